"""Where the start of an arm goes, from records with clocks of their own, and from when on waiting pays."""

import math
from collections.abc import Mapping

import msgspec
import pytest

from tests.support.runs import created, encoder, ended, passes
from tokendyno.backend.messages import (
    Compiled,
    CompiledGraph,
    Event,
    Finished,
    Loaded,
    PhaseName,
    Progress,
    Started,
    Tokens,
)
from tokendyno.backend.runs.records import ArmEvent, Record
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.start import (
    BreakEven,
    _paid_back,
    break_even,
    crossing,
    pays_sentence,
    standing,
    start_of,
    start_text,
)
from tokendyno.backend.views.start import Started as StartedArm

SECONDS: Mapping[PhaseName, float] = {"start": 0.5, "import": 3.0, "load": 2.0, "compile": 10.0, "warmup": 1.0}
STAGES = {"tokenizer": 0.2, "read": 1.0, "quantize": 0.5, "move": 0.2}
COMPILED = Compiled(
    10.0,
    [CompiledGraph(9.0)],
    {},
    {},
    0,
    0,
    1,
    stages_s={"dynamo": 2.0, "inductor": 4.0, "codegen": 3.0, "autotune": 0.0},
)
TTFT_S = 0.25


def arm_of(
    name: str,
    seconds: Mapping[PhaseName, float] = SECONDS,
    token_s: float = 0.01,
    compiled: Compiled | None = COMPILED,
    repeats: int = 1,
    gap_s: float = 0.0,
    reused: bool = False,
) -> list[Record]:
    """The records of an arm whose phases took so long, one after the other, `gap_s` apart."""
    records, at_s = list[Record](), 0.0

    def note(event: Event, repeat: int = 0) -> None:
        records.append(ArmEvent(name, repeat, at_s, event))

    for phase, took_s in seconds.items():
        note(Progress(phase, "begin", 0.0))
        at_s += took_s
        note(Progress(phase, "end", took_s))
        at_s += gap_s
    note(Loaded(1, 1, True) if reused else Loaded(1, 1, False, STAGES, {}, 0.5))
    for repeat in range(repeats):
        near = token_s * (1 + 0.01 * repeat)
        note(Started(10, 1, 64, []), repeat)
        note(Progress("run", "begin", 0.0), repeat)
        at_s += 1.0
        times = [TTFT_S + near * i for i in range(20)]
        note(Tokens(0, times, [TTFT_S] + [near] * 19, [1] * 20, [1] * 20, [1] * 20, list(range(20)), "a" * 20), repeat)
        note(Finished("length", "a" * 20, TTFT_S, 1.0, 1, "RSS", "clock", [], {"capture_s": 0.5}, compiled), repeat)
    return records


def run_of(*arms: list[Record], repeats: int = 1) -> Run:
    run = Run(created(arms="AB"[: len(arms)], repeats=repeats))
    for record in [*(one for arm in arms for one in arm), ended()]:
        run.append(record)
    return run


def test_spans_add_up_to_the_seconds_from_process_to_first_token() -> None:
    arm = run_of(arm_of("A", repeats=3), repeats=3).snapshot().arms["A"]
    start = start_of(arm, alone=True)
    assert start is not None
    assert start.spans_s == pytest.approx(
        {
            "start": 0.5,
            "import": 3.0,
            "read": 1.3,  # all of the load that is neither moved nor quantized
            "move": 0.2,
            "quantize": 0.5,
            "dynamo": 2.0,
            "inductor": 4.0,
            "codegen": 3.0,
            "capture": 0.5,
            "warmup": 1.5,  # what the compile phase ran besides, and the warm-up without the capture
            "prefill": TTFT_S,
        }
    )
    assert start.total_s == pytest.approx(sum(SECONDS.values()) + TTFT_S)


def test_the_start_of_forward_passes_has_no_first_token() -> None:
    run = Run(encoder())
    for record in [*arm_of("A")[:11], *passes("A", 20), ended()]:
        run.append(record)
    start = start_of(run.snapshot().arms["A"], alone=False)
    assert start is not None and {"read", "warmup"} <= {*start.spans_s} and "prefill" not in start.spans_s


@pytest.mark.parametrize(
    ("phase", "span"),
    [("start", "start"), ("import", "import"), ("load", "read"), ("compile", "warmup"), ("warmup", "warmup")],
)
def test_a_delay_lands_in_its_span_and_between_phases_in_none_of_them(phase: PhaseName, span: str) -> None:
    plain, late = (
        start_of(run_of(arm_of("A", seconds, gap_s=gap_s)).snapshot().arms["A"], alone=True)
        for seconds, gap_s in ((SECONDS, 0.0), ({**SECONDS, phase: SECONDS[phase] + 7.0}, 0.1))
    )
    assert plain is not None and late is not None
    grown = {name: took_s - plain.spans_s.get(name, 0.0) for name, took_s in late.spans_s.items()}
    assert {name: took_s for name, took_s in grown.items() if took_s > 1e-9} == pytest.approx(
        {span: 7.0, "between": 0.5}
    )


@pytest.mark.parametrize(
    ("seconds", "reused", "spans_s", "where"),
    [
        ({}, True, {}, "kept from an earlier run"),
        ({"warmup": 1.0}, True, {"capture": 0.5, "warmup": 0.5}, "kept from an earlier run"),
        ({"load": 2.0}, False, {"read": 1.3, "move": 0.2, "quantize": 0.5}, "done ahead of the run"),
    ],
)
def test_what_a_worker_did_before_its_run_is_said(
    seconds: Mapping[PhaseName, float], reused: bool, spans_s: Mapping[str, float], where: str
) -> None:
    run = run_of(arm_of("A", seconds, compiled=COMPILED if reused else None, reused=reused)).snapshot()
    start, text = start_of(run.arms["A"], alone=True), start_text(run, "A")
    assert start is not None and text is not None
    assert start.spans_s == pytest.approx({**spans_s, "prefill": TTFT_S})
    assert (text.parts[0].text, text.parts[0].seconds) == (where, None) and where in text.said


def test_an_arm_whose_model_was_kept_is_not_compared_by_its_start() -> None:
    kept = run_of(arm_of("A", {}, 0.02, reused=True), arm_of("B", token_s=0.01)).snapshot()
    assert pays_sentence(kept) == "" and crossing(kept) is None


def test_waiting_pays_from_so_many_tokens_on() -> None:
    quick = {"start": 0.5, "import": 3.0, "load": 2.0, "warmup": 1.0}
    run = run_of(arm_of("A", quick, 0.02, None), arm_of("B"))  # type: ignore[arg-type]
    assert pays_sentence(run.snapshot()) == (
        "B starts 10.0 s later and saves 10.0 ms a token: it pays from 1,000 tokens on, in run 16 "
        "of this length, by one pair of runs."
    )
    slower = run_of(arm_of("A", quick, 0.01, None), arm_of("B"))  # type: ignore[arg-type]
    assert pays_sentence(slower.snapshot()) == ""


@pytest.mark.parametrize(
    ("again_s", "tokens", "texts"),
    [
        (0.0, 32, 1.35 / 0.0248),
        (0.01, 32, 1.34 / 0.0148),
        (-0.01, 32, 1.36 / 0.0348),
        (0.267, 32, math.inf),
        (0.0, 4096, 1.0),
    ],
)
def test_a_first_token_that_comes_later_comes_later_in_each_text(again_s: float, tokens: int, texts: float) -> None:
    pays = BreakEven(1.35, 0.0008, 1.35 / 0.0008, again_s=again_s)
    assert pays.texts(tokens) == pytest.approx(texts)
    never = f"tokens of one text on, and never in texts of {tokens}, each of which begins 267 ms later"
    assert (never in _paid_back("B", pays, "token", tokens)) == math.isinf(texts)


def test_imports_for_which_one_arm_alone_waited_are_not_held_against_it() -> None:
    waited = run_of(arm_of("A", {**SECONDS, "import": 60.0}, 0.02), arm_of("B", token_s=0.01)).snapshot()
    assert pays_sentence(waited) == "" and crossing(waited) is None


def test_repeats_give_an_interval_which_has_no_end_where_arms_may_be_as_fast() -> None:
    quick = {"start": 0.5, "import": 3.0, "load": 2.0, "warmup": 1.0}

    def found(token_s: float) -> str:
        arms = arm_of("A", quick, token_s, None, 3), arm_of("B", repeats=3)  # type: ignore[arg-type]
        return pays_sentence(run_of(*arms, repeats=3).snapshot())

    assert "it pays from 990 tokens on (" in found(0.02)
    assert "whether that ever pays is not settled" in found(0.0101)


def test_the_text_says_where_graphs_came_from() -> None:
    cached = msgspec.structs.replace(COMPILED, hits=1, misses=0)
    run = run_of(arm_of("A", compiled=cached)).snapshot()
    text = start_text(run, "A")
    assert text is not None and text.said == "steady after 16.8 s, then 10.0 ms a token; 1 graph from the compile cache"
    assert sum(part.share for part in text.parts) == pytest.approx(1.0)
    assert {part.key: part.reads for part in text.parts}["read"] == "50% from the page cache, the rest from the disk"


def test_stages_are_told_apart_by_graph_where_there_are_several() -> None:
    graphs = [CompiledGraph(took_s, stages_s={"dynamo": took_s}) for took_s in (0.25, 1.0, 0.001, 0.5, 0.125, 0.125)]
    compiled = msgspec.structs.replace(COMPILED, graphs=graphs)
    run = run_of(arm_of("A", compiled=compiled)).snapshot()
    text = start_text(run, "A")
    assert text is not None
    notes = {part.key: part.reads for part in text.parts}
    assert notes["dynamo"] == "graph 2 of 6 1.00 s, graph 4 of 6 500 ms, graph 1 of 6 250 ms, others 250 ms"
    assert notes["codegen"] == ""


def test_an_arm_that_starts_no_later_need_not_catch_up() -> None:
    now = run_of(arm_of("A")).snapshot()
    start = start_of(now.arms["A"], alone=True)
    assert start is not None
    assert break_even(StartedArm(start, now.summaries["A"]), StartedArm(start, now.summaries["A"])) is None


def test_lines_cross_where_the_sentence_says_whichever_arm_starts_later() -> None:
    quick = {"start": 0.5, "import": 3.0, "load": 2.0, "warmup": 1.0}
    run = run_of(arm_of("A"), arm_of("B", quick, 0.02, None)).snapshot()  # type: ignore[arg-type]
    lines = crossing(run)
    assert lines is not None and lines.label == "1,000 tokens"
    after = [start_s + lines.tokens * step_s for start_s, step_s in zip(lines.starts_s, lines.steps_s, strict=True)]
    assert after[0] == pytest.approx(after[1]) and lines.starts_s == pytest.approx([13.25, 3.25])
    first, other = (
        StartedArm(start, run.summaries[name])
        for name in run.arms
        if (start := start_of(run.arms[name], alone=False)) is not None
    )
    sentence = (
        "A starts 10.0 s later and saves 10.0 ms a token: it pays from 1,000 tokens on, in run 16 "
        "of this length, by one pair of runs."
    )
    assert pays_sentence(run) == standing("A", first, "B", other, "token", 64) == sentence
    slower = run_of(arm_of("A", quick, 0.01, None), arm_of("B"))  # type: ignore[arg-type]
    assert crossing(slower.snapshot()) is None
