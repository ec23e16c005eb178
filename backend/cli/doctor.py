"""`tokendyno doctor`: this machine, the versions, and which choices are usable here, as a screenful or whole."""

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from tokendyno.backend import hardware
from tokendyno.backend.arms.usable import usable_choices
from tokendyno.backend.cli.files import give
from tokendyno.backend.cli.main import FAILED, OK
from tokendyno.backend.cli.options import Add
from tokendyno.backend.cli.terminal import Block, Column, Line, Row, Styled, Table
from tokendyno.backend.errors import InputError
from tokendyno.backend.hardware import Machine, peak_rates
from tokendyno.backend.hardware.bandwidth import Bandwidth, MeasureFailed, measure, recall, remember
from tokendyno.backend.hardware.compatibility import startup_messages
from tokendyno.backend.hardware.compilers import INSTALL
from tokendyno.backend.hosting.limits import LIMITS, Limits
from tokendyno.backend.hosting.limits import rows as limit_rows
from tokendyno.backend.models import DEFAULT_MODEL, resolve
from tokendyno.backend.models.files.hub import CachedRepository, cached_repositories
from tokendyno.backend.runs.row import gpus_of
from tokendyno.backend.units import bytes_text, plural

_MAIN = ("tokendyno", "python", "torch", "transformers", "gradio")
_NAMES = 58
"""Columns of the names of choices that do not run, in a screenful."""

_PAIRS = (Column(), Column(prose=True))


class ChoiceEntry(msgspec.Struct, frozen=True):
    """One choice of one axis on this machine. `why`: a remark, or why it is not usable."""

    axis: str
    choice: str
    usable: bool
    why: str


class DoctorDocument(msgspec.Struct, frozen=True):
    """The machine and what it can run: every choice with its verdict for the default model. `bandwidth`: measured now
    or earlier; null: never, or that failed."""

    machine: dict[str, str]
    versions: dict[str, str]
    problems: list[str]
    choices: list[ChoiceEntry]
    bandwidth: Bandwidth | None
    limits: dict[str, Limits]
    cached: list[CachedRepository]
    kind: str = "doctor"
    schema: int = 3


class Report(NamedTuple):
    """A document with why the bandwidth could not be measured now, and which peak rates are unknown; "" if neither."""

    document: DoctorDocument
    bandwidth_problem: str
    bandwidth_note: str


def doctor(options: argparse.Namespace) -> int:
    report = doctor_report(hardware.detect(), options.bandwidth)
    give(options, everything(report) if options.verbose else screenful(report), report.document)
    return FAILED if report.bandwidth_problem else OK


def doctor_report(machine: Machine, bandwidth: bool = False) -> Report:
    """Inspect this machine. `bandwidth`: measure it now and keep it; otherwise an earlier measurement is shown."""
    problems = [*startup_messages(), *machine.remarks]
    if machine.no_compiler:
        problems.append(f"torch.compile cannot run: {machine.no_compiler}. Install it {INSTALL}.")
    rates, failure = recall(machine.name), ""
    if bandwidth:
        try:
            rates = measure(machine)
            problems += filter(None, [remember(rates)])
        except MeasureFailed as error:
            rates, failure = None, f"the measurement failed: {error}."
            problems.append(f"The memory bandwidth is unknown; {failure}")
    choices = list[ChoiceEntry]()
    try:
        facts = resolve(DEFAULT_MODEL)
    except InputError as error:
        problems.append(str(error))
    else:
        choices = msgspec.convert(usable_choices(facts, machine), list[ChoiceEntry], from_attributes=True)
    limits = {str(mode): limits for mode, limits in LIMITS.items()}
    document = DoctorDocument(
        machine.describe(), hardware.versions(), problems, choices, rates, limits, list(cached_repositories())
    )
    return Report(document, failure, peak_rates.remark(machine))


# --- a screenful ----------------------------------------------------------------------------------


def screenful(report: Report) -> list[Block]:
    """What fits a screen of 80 columns, and all problems."""
    document = report.document
    machine, versions = document.machine, document.versions
    rows = [
        ["versions", ", ".join(f"{name} {versions[name]}" for name in _MAIN if name in versions)],
        ["cpu", f"{machine.get('cpu', 'unknown')}, {machine.get('cores', '?')} cores, {machine.get('memory', '?')}"],
        ["gpu", _gpus(machine)],
        ["bandwidth", _bandwidth(report)],
        *([["downloads", _downloads(document.cached)]] if document.cached else []),
    ]
    first: Block = [Table(_PAIRS, rows)]
    last: Block = [
        *_unusable(document.choices),
        Styled("Every version, choice and reason: tokendyno doctor --verbose", "dim"),
    ]
    if not document.problems:
        return [first, [Styled("No problems found.", "green")], last]
    problems = Table([Column(prose=True)], [[problem] for problem in document.problems], indent=2)
    return [first, [Styled("Problems", "bold yellow"), problems], last]


def _gpus(machine: dict[str, str]) -> str:
    """Equal GPUs are counted; without one, why none is used."""
    cards = gpus_of(machine)
    if not cards:
        return machine.get("gpu") or "none"
    counted = [f"{cards.count(card)} x {card}" if cards.count(card) > 1 else card for card in dict.fromkeys(cards)]
    driver = f"; driver {machine['driver']}" if "driver" in machine else ""
    return "; ".join(counted) + driver


def _bandwidth(report: Report) -> str:
    if (bandwidth := report.document.bandwidth) is not None:
        return f"{bandwidth.read_bytes_per_s / 1e9:,.4g} GB/s read from memory, measured"
    return report.bandwidth_problem or "not measured yet: tokendyno doctor --bandwidth"


def _downloads(cached: Sequence[CachedRepository]) -> str:
    parts = []
    for kind in ("model", "kernel"):
        sizes = [repository.bytes for repository in cached if repository.kind == kind]
        if sizes:
            parts.append(f"{plural(len(sizes), kind)}, {' '.join(bytes_text(sum(sizes)))}")
    return "; ".join(parts)


def _unusable(choices: Sequence[ChoiceEntry]) -> list[Line]:
    """How many choices of each axis run, and the names of those that do not, one line an axis."""
    if not choices:
        return []
    usable = sum(entry.usable for entry in choices)
    heading = f"{usable} of {len(choices)} choices run for {DEFAULT_MODEL} on this machine. These do not:"
    unusable: dict[str, list[str]] = {}
    for entry in choices:
        if not entry.usable:
            unusable.setdefault(entry.axis, []).append(entry.choice)
    rows = [[axis, _some(names, _NAMES)] for axis, names in unusable.items()]
    return [Styled(heading, "bold"), Table(_PAIRS, rows, indent=2)]


def _some(names: Sequence[str], width: int) -> str:
    """As many names as there is room for, and how many more there are."""
    shown: list[str] = []
    for i, name in enumerate(names):
        hidden = len(names) - i - 1
        tail = f" and {hidden} more" if hidden else ""
        if len(", ".join([*shown, name])) + len(tail) > width:
            return ", ".join(shown) + f" and {hidden + 1} more"
        shown.append(name)
    return ", ".join(shown)


# --- all of it ------------------------------------------------------------------------------------


def everything(report: Report) -> list[Block]:
    document = report.document

    def section(title: str, rows: Sequence[Row], columns: Sequence[Column] = _PAIRS) -> Block:
        return [Styled(title, "bold"), Table(columns, rows, indent=2)]

    blocks = [section("Machine", [*document.machine.items()]), section("Versions", [*document.versions.items()])]
    blocks.append(section("Problems", [["", problem] for problem in document.problems] or [["", "none found"]]))
    bandwidth = document.bandwidth
    if bandwidth is not None:
        rates = (("read", bandwidth.read_bytes_per_s), ("copy", bandwidth.copy_bytes_per_s))
        rows = [*([name, f"{rate / 1e9:,.4g} GB/s"] for name, rate in rates), ["method", bandwidth.method]]
        blocks.append(section(f"Memory bandwidth of {bandwidth.device}", rows))
    elif report.bandwidth_problem:
        blocks.append(section("Memory bandwidth", [["", f"n/a: {report.bandwidth_problem}"]]))
    if report.bandwidth_note:
        blocks.append([report.bandwidth_note])
    limits = [["", *LIMITS], *([name, *cells] for name, cells in limit_rows())]
    blocks.append(section("Limits of visitors, by mode", limits, [Column()] * (1 + len(LIMITS))))
    sizes: list[Row] = [[cached.kind, cached.repo, " ".join(bytes_text(cached.bytes))] for cached in document.cached]
    blocks.append(section("In the Hub's cache", sizes or [["", "none", ""]], [Column(), Column(), Column(right=True)]))
    choices: list[Row] = [
        [f"{entry.axis}={entry.choice}", Styled("yes", "green") if entry.usable else Styled("no", "yellow"), entry.why]
        for entry in document.choices
    ]
    columns = (Column(), Column(), Column(below=True))
    return [*blocks, section(f"Choices for {DEFAULT_MODEL} on this machine", choices, columns)]


def add_commands(add: Add) -> None:
    sub = add("doctor", doctor, "show the machine, the versions, and which choices are usable", json=True)
    sub.add_argument(
        "--bandwidth", action="store_true", help="measure the memory bandwidth and keep it for roofline bounds"
    )
    sub.add_argument("--verbose", action="store_true", help="every version, every choice and why it does not run")
