"""`tokendyno start`: where the start of each arm goes, in new processes, and from when on waiting for one pays."""

import argparse
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tokendyno.backend.cli.commands import bench_of, submitted
from tokendyno.backend.cli.files import check_folder, give
from tokendyno.backend.cli.main import BAD_INPUT, FAILED, OK, STOPPED, CommandFailed
from tokendyno.backend.cli.options import ARM_HELP, NO_CHOICE, Add, add_repeats, add_workload, request_of
from tokendyno.backend.cli.progress import follow, say
from tokendyno.backend.cli.stored import add_history_option
from tokendyno.backend.cli.terminal import Block, Cell, Column, Styled, Table
from tokendyno.backend.config import Request
from tokendyno.backend.engine.bench import Bench
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
    check_folder(options.models_dir)
    arms = {"A": options.a} if options.b is None else {"A": options.a, "B": options.b}
    requests = {name: request_of(options, {name: arm}) for name, arm in arms.items()}
    rows: list[Row] = []
    stopped = False
    failure: CommandFailed | None = None
    with bench_of(options, executor="cold") as bench:
        for request in requests.values():
            bench.admitted(request)  # what is refused is said before anything is measured
        bench.start()
        try:
            for name, request in requests.items():
                for label, variant in _variants(name, request):
                    say(f"{label}:")
                    rows.append(_row(bench, label, name, variant))
        except KeyboardInterrupt:
            stopped = True
        except CommandFailed as error:
            failure = error
    if rows:  # also those that were measured before an arm failed, or Ctrl-C came
        give(options, _blocks(rows), _document(rows))
    if failure is not None:
        raise failure
    return STOPPED if stopped else OK


def _variants(name: str, request: Request) -> Iterator[tuple[str, Request]]:
    """An arm, or where it compiles and says nothing of caches, once with an empty cache and once with a full one."""
    (arm,) = request.arms
    if arm.choices.get("compile", "off") == "off" or "compile_cache" in arm.choices:
        yield name, request
        return
    yield f"{name}, cold", replace(request, arms=[replace(arm, choices={**arm.choices, "compile_cache": "fresh"})])
    yield f"{name}, cached", request


def _row(bench: Bench, label: str, name: str, request: Request) -> Row:
    """Measure the start of an arm. CommandFailed where its run failed."""
    run = _carried_out(bench, request)
    end = run.arms[name].finished
    if label.endswith("cached") and end and end.compiled and end.compiled.misses:
        run = _carried_out(bench, request)  # the first one filled the cache
    now = run.snapshot()
    start = start_of(now.arms[name], alone=True)
    if run.status != "done" or start is None:
        raise CommandFailed(run.message, BAD_INPUT if run.bad_input else FAILED)
    return Row(label, run, Started(start, now.summaries[name]))


def _carried_out(bench: Bench, request: Request) -> Run:
    """A run in a new process, which has ended."""
    run = submitted(bench, request, fresh=True)
    if follow(bench, run):
        raise KeyboardInterrupt
    return run


def _blocks(rows: list[Row]) -> list[Block]:
    """A line for each span, a column for each arm; then when waiting pays."""
    first, created = rows[0], rows[0].run.created
    starts, summaries = [row.started.start for row in rows], [row.started.summary for row in rows]
    lines: list[Sequence[Cell]] = [
        [title, *(_seconds(start.spans_s.get(span)) for start in starts)]
        for span, title in TITLES.items()
        if any(span in start.spans_s for start in starts)
    ]
    step = "token" if created.unit == "token" else "forward pass"
    lines.append([f"To the first {step}", *(Styled(_seconds(start.total_s), "bold") for start in starts)])
    lines.append([f"Then, per {step}", *(_seconds(summary.latency_mean_s) for summary in summaries)])
    columns = [Column(prose=True), *(Column(row.label, right=True) for row in rows)]
    tokens = created.request.workload.max_new_tokens
    standings = [
        standing(first.label, first.started, row.label, row.started, created.unit, tokens)
        for row in rows[1:]
        if row.run.arms.keys() != first.run.arms.keys()  # an arm that is cold runs as fast as it does later
    ]
    notes = [f"{row.label}: {note}." for row in rows if (note := _origins(row.started.start))]
    return [
        [f"{created.model_label}, from process to first {step}"],
        [Table(columns, lines)],
        [*notes, *filter(None, standings)],
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
                start.total_s,
                start.spans_s,
                summary.latency_mean_s,
                origin(start.compiled),
                start.cached,
                pays.get(label),
                start.before,
                start.compiled.graphs if start.compiled else [],
            )
            for label, run, (start, summary) in rows
        ],
    )


def _origins(start: Start) -> str:
    files = cache_text(start) and f"files {cache_text(start)}"
    return "; ".join(filter(None, [before_text(start), files, origin(start.compiled)]))


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else " ".join(seconds_text(seconds))


def add_commands(add: Add) -> None:
    sub = add("start", start, "where the start of an arm goes, and from when on waiting for another pays", json=True)
    sub.add_argument("--a", default="", metavar="ARM", help=f"arm A: {ARM_HELP} {NO_CHOICE}")
    sub.add_argument("--b", metavar="ARM", help="arm B, likewise; without it, arm A alone")
    add_workload(sub)
    add_repeats(sub)
    add_history_option(sub)
