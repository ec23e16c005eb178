"""`tokendyno check` and `export`: an arm without a run, as a verdict or as a script; a run as a file."""

import argparse
import os
from pathlib import Path

from tokendyno.backend.arms.arguments import arguments_of
from tokendyno.backend.arms.check import Checked
from tokendyno.backend.cli.files import check_folder, check_writable, give, write_text
from tokendyno.backend.cli.main import BAD_INPUT, OK
from tokendyno.backend.cli.options import Add, add_arm, add_elsewhere, add_repeats, add_workload, request_of
from tokendyno.backend.cli.progress import say
from tokendyno.backend.cli.stored import add_history, add_history_option, find_records
from tokendyno.backend.cli.terminal import Block, Column, Line, Styled, Table
from tokendyno.backend.config import Request
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors import open_bench
from tokendyno.backend.export.script import script
from tokendyno.backend.export.short import short_script
from tokendyno.backend.fit.device import elsewhere
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import check_loadable, download_bytes
from tokendyno.backend.optimizations import defaults
from tokendyno.backend.recordings.format import ENDING, write_recording
from tokendyno.backend.units import bytes_text
from tokendyno.backend.views.check_document import CheckDocument, check_document

_LEVELS = {"blocked": "red", "fallback": "yellow", "note": "cyan"}


def check(options: argparse.Namespace) -> int:
    checked, document = checked_arm(options)
    give(options, check_blocks(checked, document, options.all), document)
    return OK if document.runnable else BAD_INPUT


def checked_arm(options: argparse.Namespace) -> tuple[Checked, CheckDocument]:
    """The arm after the rules, and after what keeps its model from being loaded here; and its document."""
    bench, request, checked, target = _arm(options)
    facts = checked.facts
    obstacle = "" if target else bench.obstacle(facts)
    checked = checked.refused(obstacle)
    size = 0 if target or obstacle else download_bytes(facts.source)
    return checked, check_document(request, facts, checked, target or bench.machine(), size)


def _arm(options: argparse.Namespace) -> tuple[Bench, Request, Checked, Machine | None]:
    """The arm after the rules, and the machine that it is for; None: this one."""
    check_folder(options.models_dir)
    bench = open_bench(None, options.models_dir)
    target = elsewhere(bench.machine(), options.gpu, options.gpus)
    request = request_of(options, {"A": options.arm}, machine=target)
    return bench, request, bench.check(request, target)["A"], target


def check_blocks(checked: Checked, document: CheckDocument, everything: bool) -> list[Block]:
    """Whether the arm would run, memory and bound, choices that are no defaults or are planned otherwise, verdicts."""
    where = f" on {document.where}" if document.assumed else ""
    style = "bold red" if checked.blocked else "bold yellow" if checked.replaced else "bold green"
    verdict_line = Styled(checked.sentence(where), style)
    predicted, free = (" ".join(bytes_text(size)) for size in (checked.needed_bytes, checked.room_bytes))
    margin = f" \u00b1 {checked.memory.margin:.0%}" if checked.memory.margin else ""
    head: list[Line] = [verdict_line, f"Memory: {predicted}{margin} predicted, {free} free."]
    if document.bound:
        head.append(f"Roofline bound: {document.bound.words}.")
    if document.download_bytes:
        head.append(f"Download: {' '.join(bytes_text(document.download_bytes))} from the Hub, before the first run.")
    default, planned = defaults(), checked.planned
    rows = [
        [axis, choice, planned[axis] if planned[axis] != choice else ""]
        for axis, choice in checked.requested.items()
        if everything or choice != default[axis] or planned[axis] != choice
    ]
    table: list[Line] = [Table([Column("axis"), Column("requested"), Column("planned")], rows)] if rows else []
    hidden = len(checked.requested) - len(rows)
    if hidden:
        table.append(Styled(f"{hidden} more at default; --all shows all axes.", "dim"))
    blocks: list[Block] = [head, table, [Styled(line, "dim") for line in arguments_of(checked).lines()]]
    for verdict in checked.verdicts:
        fix = ", ".join(f"{axis}={choice}" for axis, choice in verdict.fix.items())
        sentences = [verdict.reason, fix and f"Fix: {fix}.", verdict.source and f"Source: {verdict.source}"]
        style = _LEVELS.get(verdict.level, "bold")
        blocks.append([Styled(verdict.level, style, f": {' '.join(filter(None, sentences))}")])
    return blocks + [[Styled(axis, "cyan", f": {detail}")] for axis, detail in checked.details.items()]


def export(options: argparse.Namespace) -> int:
    if options.run:
        return _export_run(options)
    check_writable(options.output, "--output")
    _, request, checked, target = _arm(options)
    checked.require_runnable()
    check_loadable(checked.facts)
    for verdict in checked.verdicts:  # such as what was left out of a preset
        say(f"{verdict.level} ({verdict.axis}): {verdict.reason}")
    write = script if options.standalone else short_script
    write_text(options.output, write(checked, checked.facts, request.workload, paths=target is None), "--output")
    return OK


def _export_run(options: argparse.Namespace) -> int:
    if options.output == "-":
        raise InputError(f"A run is exported to a file: name it, such as -o {options.run[:12]}{ENDING}.")
    size = write_recording(Path(options.output), find_records(options.run, options.history))
    say(f"Wrote {options.output}: {size:,} bytes.")
    return OK


def add_commands(add: Add) -> None:
    details = "It takes the line of a run as it is."
    sub = add("check", check, "check an arm without running it; exit code 2 if refused", details, json=True)
    add_arm(sub)
    add_workload(sub)
    add_elsewhere(sub)
    add_repeats(sub, hidden=True)
    add_history_option(sub, hidden=True)
    sub.add_argument("--all", action="store_true", help="every axis, those at their defaults too")
    details = "A few lines: transformers' own calls where they do all that the arm does, else tokendyno as a library."
    sub = add("export", export, "write an arm as a Python script", details)
    add_arm(sub)
    sub.add_argument(
        "-o", "--output", default="-", type=os.path.expanduser, metavar="FILE", help="the script; - is standard output"
    )
    sub.add_argument(
        "--standalone",
        action="store_true",
        help="the whole arm, with warm-up and times, in a script that needs no tokendyno",
    )
    sub.add_argument(
        "--run",
        default="",
        metavar="RUN",
        help="write every record of this run as one file instead, without who ran it",
    )
    add_history(sub)
    add_elsewhere(sub)
    add_workload(sub)
    sub.set_defaults(repeats=1)
