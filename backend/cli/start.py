"""`tokendyno start`: where the start of each arm goes, in new processes, and from when on waiting for one pays."""

import argparse
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tokendyno.backend.cli.files import check_folder, check_writable, give
from tokendyno.backend.cli.main import BAD_INPUT, FAILED, OK, STOPPED, CommandFailed
from tokendyno.backend.cli.options import ARM_HELP, NO_CHOICE, Add, add_repeats, add_workload, request_of
from tokendyno.backend.cli.progress import close, follow, say, say_notes
from tokendyno.backend.cli.stored import add_history_option, history_of
from tokendyno.backend.cli.terminal import Block, Cell, Column, Styled, Table
from tokendyno.backend.config import Request
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.executors import open_bench
from tokendyno.backend.messages import CompiledGraph
from tokendyno.backend.runs.records import Unit
from tokendyno.backend.runs.run import Run
from tokendyno.backend.units import seconds_text
from tokendyno.backend.views.start import (
    TITLES,
    Before,
    BreakEven,
    Start,
    Started,
    before_text,
    break_even,
    cache_text,
    origin,
    standing,
    start_of,
)


class ArmStart(msgspec.Struct, frozen=True):
    """The start of one arm. `spans_s`: seconds by span; `token_s`: mean seconds a token, or a forward pass, after it;
    `compiled`: where compiled graphs came from, "" where nothing was compiled; `cached`: share of the weights' files
    that was in the page cache; `pays`: against the first arm; `before`: what had been done before the run;
    `graphs`: what compiling each took, by stage."""

    name: str
    choices: dict[str, str]
    run: str
    total_s: float
    spans_s: dict[str, float]
    token_s: float | None
    compiled: str
    cached: float | None
    pays: BreakEven | None
    before: Before = ""
    graphs: list[CompiledGraph] = []


class StartDocument(msgspec.Struct, frozen=True):
    """What `--json` writes."""

    model: str
    machine: dict[str, str]
    unit: Unit
    tokens: int
    arms: list[ArmStart]
    kind: str = "start"
    schema: int = 3


class Row(NamedTuple):
    """An arm as it is shown: its name, and a run of it alone."""

    label: str
    run: Run
    started: Started


def start(options: argparse.Namespace) -> int:
    """Run each arm by itself, in a new process; one that compiles first with an empty cache, then with a full one."""
    check_writable(options.json)
    check_folder(options.models_dir)
    asked = {"A": options.a} if options.b is None else {"A": options.a, "B": options.b}
    requests = {name: request_of(options, {name: arm}) for name, arm in asked.items()}
    bench = open_bench(history_of(options), options.models_dir, executor="cold")
    rows: list[Row] = []
    try:
        say_notes(bench)
        bench.start()
        for name, request in requests.items():
            for label, variant in _variants(name, request):
                say(f"{label}:")
                run = _carried_out(bench, variant)
                end = run.arms[name].finished
                if label.endswith("cached") and end and end.compiled and end.compiled.misses:
                    run = _carried_out(bench, variant)  # the first one filled the cache
                now = run.snapshot()
                found = start_of(now.arms[name], alone=True)
                if run.status == "cancelled":
                    return STOPPED
                if run.status != "done" or found is None:
                    raise CommandFailed(run.message, BAD_INPUT if run.bad_input else FAILED)
                rows.append(Row(label, run, Started(found, now.summary(name))))
        give(options, _blocks(rows), _document(rows))
        return OK
    finally:
        close(bench)


def _variants(name: str, request: Request) -> Iterator[tuple[str, Request]]:
    """An arm, or where it compiles and says nothing of caches, once with an empty cache and once with a full one."""
    (arm,) = request.arms
    if arm.choices.get("compile", "off") == "off" or "compile_cache" in arm.choices:
        yield name, request
        return
    yield f"{name}, cold", replace(request, arms=[replace(arm, choices={**arm.choices, "compile_cache": "fresh"})])
    yield f"{name}, cached", request


def _carried_out(bench: Bench, request: Request) -> Run:
    run = bench.runs.get(bench.submit(request, fresh=True))
    assert run is not None
    follow(bench, run)
    return run


def _blocks(rows: list[Row]) -> list[Block]:
    """A line for each span, a column for each arm; then when waiting pays."""
    created = rows[0].run.created
    starts, summaries = [row.started.start for row in rows], [row.started.summary for row in rows]
    spans = [span for span in TITLES if any(span in found.spans_s for found in starts)]
    lines: list[Sequence[Cell]] = [
        [TITLES[span], *(_seconds(found.spans_s.get(span)) for found in starts)] for span in spans
    ]
    step = "token" if created.unit == "token" else "forward pass"
    lines.append(["To the first token", *(Styled(_seconds(found.total_s), "bold") for found in starts)])
    lines.append([f"Then, per {step}", *(_seconds(summary.latency_mean_s) for summary in summaries)])
    columns = [Column(prose=True), *(Column(row.label, right=True) for row in rows)]
    tokens = created.request.workload.max_new_tokens
    first = rows[0]
    said = [
        standing(first.label, first.started, row.label, row.started, created.unit, tokens)
        for row in rows[1:]
        if row.run.arms.keys() != first.run.arms.keys()  # an arm that is cold runs as fast as it does later
    ]
    notes = [f"{row.label}: {note}." for row in rows if (note := _origins(row.started.start))]
    return [
        [f"{created.model_label}, from process to first token"],
        [Table(columns, lines)],
        [*notes, *filter(None, said)],
    ]


def _document(rows: list[Row]) -> StartDocument:
    created = rows[0].run.created
    pays = {row.label: break_even(rows[0].started, row.started) for row in rows[1:]}
    return StartDocument(
        created.model_label,
        created.machine,
        created.unit,
        created.request.workload.max_new_tokens,
        [
            ArmStart(
                label,
                run.created.request.arms[0].choices,
                run.id,
                found.total_s,
                found.spans_s,
                summary.latency_mean_s,
                origin(found.compiled),
                found.cached,
                pays.get(label),
                found.before,
                found.compiled.graphs if found.compiled else [],
            )
            for label, run, (found, summary) in rows
        ],
    )


def _origins(found: Start) -> str:
    files = cache_text(found) and f"files {cache_text(found)}"
    return "; ".join(filter(None, [before_text(found), files, origin(found.compiled)]))


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else " ".join(seconds_text(seconds))


def add_commands(add: Add) -> None:
    """The command and its options."""
    sub = add("start", start, "where the start of an arm goes, and from when on waiting for another pays", json=True)
    sub.add_argument("--a", default="", metavar="ARM", help=f"arm A: {ARM_HELP} {NO_CHOICE}")
    sub.add_argument("--b", metavar="ARM", help="arm B, likewise; without it, arm A alone")
    add_workload(sub)
    add_repeats(sub)
    add_history_option(sub)
