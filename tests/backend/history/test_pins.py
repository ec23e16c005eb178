"""Arms side by side: what was measured, and what else sets them apart."""

from collections.abc import Callable, Iterator

import pytest

from tests.support.batches import batch_arm, batch_created, paged_events, static_events
from tests.support.kept_runs import H200, history_of, made, run_on
from tests.support.runs import encoder, ended, passes
from tokendyno.backend.errors import InputError
from tokendyno.backend.history.pins import Cell, Figure, Pin, SideBySide, read_pins
from tokendyno.backend.runs.records import Record

Beside = Callable[[str], SideBySide]
RUNS: list[list[Record]] = [
    made(run_on("here")),
    made(run_on("there", H200, versions={"torch": "2.13.0", "transformers": "5.22.2", "numpy": "2.4"})),
    made(run_on("longer"), (40, 40)),
    made(run_on("old", versions={}, prompt="Another")),
    [encoder(), *passes("A", 20), ended()],
    [
        encoder("drifting", "AB", repeats=4),
        *(
            event
            for repeat in range(4)
            for arm, share in (("A", 1.0), ("B", 1.25 + 0.01 * repeat))
            for event in passes(arm, 20, repeat, 0.01 * (repeat + 1) * share)
        ),
        ended(),
    ],
    [run_on("failed"), ended("failed")],
    [batch_created("batch", at_s=0.0), *batch_arm("A", static_events()), *batch_arm("B", paged_events()), ended()],
]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    with history_of(tmp_path_factory.mktemp("pins") / "h.sqlite", RUNS) as history:
        yield lambda text: history.beside(read_pins(text))


def cells(table: SideBySide, label: str) -> list[str]:
    (row,) = (row for row in table.rows if row.label == label)
    return [cell.text for cell in row.cells]


def test_arms_of_one_run_differ_in_their_choices_only(kept: Beside) -> None:
    table = kept("here.A,here.B")
    assert [(head.label, head.arm, head.choices) for head in table.arms] == [
        ("1", "A", "defaults"),
        ("2", "B", "cache=unwindowed"),
    ]
    assert table.remarks[0].endswith("only the choices differ.")
    assert cells(table, "cache") == ["dynamic", "unwindowed"]
    assert [row.label for row in table.rows if row.group == "choices"] == ["cache"]  # dtype is the same
    assert cells(table, "Time per token, mean") == ["10.0 ms", "10.0 ms"]
    kv = next(row for row in kept("longer.A,longer.B").rows if row.label == "KV cache").cells
    assert [(cell.text, cell.against) for cell in kv] == [("40.0 KiB", ""), ("49.0 KiB", "23% more than 1")]
    assert cells(table, "Text begins")[0].startswith("word word")
    assert cells(table, "Ledger") == ["1 of 2 verified, 1 unchecked"] * 2


@pytest.mark.parametrize(
    ("value", "interval", "said"),
    [
        (10.0, None, "the same as 1"),
        (13.0, None, "30% more than 1"),
        (26.0, None, "2.6× that of 1"),
        (8.0, (7.5, 8.5), "20% less than 1"),
        (8.0, (7.5, 9.9), "20% less than 1, within noise"),
        (None, None, ""),
    ],
)
def test_a_figure_against_that_of_the_first_arm_is_a_whole_phrase(
    value: float | None, interval: tuple[float, float] | None, said: str
) -> None:
    first = Figure("Latency", Cell("10 ms"), 10.0, interval=(9.8, 10.2))
    assert Figure("Latency", Cell("x"), value, interval=interval).against(first) == said


def test_the_pairs_of_a_run_decide_between_its_arms_where_both_intervals_overlap(kept: Beside) -> None:
    """The machine got slower with each pair, and B took from 25% to 28% more time in each."""

    def said(pins: str) -> list[str]:
        rows = {row.label: row.cells[1].against for row in kept(pins).rows}
        return [rows["Time per forward pass, mean"], rows["Throughput"]]

    assert said("drifting.A,drifting.B") == ["26% more than 1", "21% less than 1"]
    assert said("drifting.B,drifting.A") == ["21% less than 1", "26% more than 1"]


def test_what_else_differs_is_said_and_only_like_is_set_against_like(kept: Beside) -> None:
    table = kept("here.A,there.A,longer.A,old.B")
    (first, *_) = table.remarks
    assert "machine (Ryzen 7, 8 cores; NVIDIA H200)" in first and "torch (2.11.0; 2.13.0; not recorded)" in first
    assert "new tokens (20; 40)" in first and "prompt (Once upon; Another)" in first
    assert "transformers" not in first.replace("transformers (5.22.2; not recorded)", "")
    assert "Figures of 3 are not set against those of 1: model, lengths or batch size differ." in table.remarks
    assert "Versions of 4 were not recorded, so they may differ as well." in table.remarks
    latency = next(row for row in table.rows if row.label == "Time per token, mean")
    assert [cell.against for cell in latency.cells] == ["", "the same as 1", "", "the same as 1"]
    assert any(remark.startswith("Of 1 there is one run") for remark in kept("here.A,failed.A").remarks)
    assert table.arms[1].unlike[:1] == ["Machine"] and not table.arms[2].alike


def test_arms_of_like_runs_compete_in_time_and_memory(kept: Beside) -> None:
    table = kept("here.A,here.B,longer.A").pareto
    assert table is not None and table.quality == ""
    assert [point.label for point in table.points][1].startswith("pin 2, ") and table.points[1].label.endswith(
        "unwindowed)"
    )
    assert [point.alike for point in table.points] == ["", "", "3"] and table.points[2].front
    assert [point.mark for point in table.points] == ["1", "2", "3"], "a point has the number of its pin"
    assert kept("batch.A,passes.A").pareto is None, "neither has a time per token and a memory"


def test_runs_of_every_kind_can_be_pinned(kept: Beside) -> None:
    table = kept("here.A,passes.A,batch.A,batch.B")
    assert cells(table, "Useful tokens")[:2] == ["n/a", "n/a"] and "tok/s" in cells(table, "Useful tokens")[2]
    assert cells(table, "Timed") == ["tokens", "forward passes", "n/a", "n/a"]
    assert [head.alike for head in table.arms] == [True, False, False, False]


def test_a_run_that_is_gone_leaves_the_others(kept: Beside) -> None:
    table = kept("here.A,nothing.A,here.C,there.B")
    assert table.missing == ["nothing.A", "here.C"] and [head.pin for head in table.arms] == ["here.A", "there.B"]
    assert not any("choices" in remark for remark in kept("here.A,nothing.A").remarks)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("here", "no pin"),
        ("<script>.A", "no pin"),
        ("here.", "no pin"),
        ("a.A,b.A,c.A,d.A,e.A,f.A", "6 arms are pinned"),
        ("x" * 900, "too many"),
    ],
)
def test_what_is_no_pin_is_said(text: str, part: str) -> None:
    with pytest.raises(InputError) as raised:
        read_pins(text)
    assert part in str(raised.value)


def test_one_pin_is_not_enough_and_a_pin_counts_once(kept: Beside) -> None:
    assert read_pins("a.A, a.A,,b.B") == [Pin("a", "A"), Pin("b", "B")]
    for text in ("", "here.A", "here.A,here.A"):
        with pytest.raises(InputError, match="Pin 2 to 5 arms"):
            kept(text)
    with pytest.raises(InputError, match="None of these runs"):
        kept("no.A,nor.B")
