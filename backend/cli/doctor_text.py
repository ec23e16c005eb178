"""What `tokendyno doctor` says for a terminal: a screenful (24 lines of 80 columns), or all of it."""

from collections.abc import Sequence

from backend.cli.doctor import Report
from backend.hosting.limits import LIMITS
from backend.hosting.limits import rows as limit_rows
from backend.models import DEFAULT_MODEL
from backend.terminal import Column, Screen, fold, table

SCREENFUL = 24
_MAIN = ("tokendyno", "python", "torch", "transformers", "gradio")
_NAMES = 58
"""Columns of the names of choices that do not run, in a screenful."""


def doctor_text(report: Report, screen: Screen, verbose: bool) -> str:
    """For a terminal; `verbose`: every version, every choice and every reason."""
    return "\n".join(_everything(report, screen) if verbose else _screenful(report, screen))


# --- a screenful ----------------------------------------------------------------------------------


def _screenful(report: Report, screen: Screen) -> list[str]:
    machine, versions = report.machine, report.versions
    packages = ", ".join(f"{name} {versions[name]}" for name in _MAIN if name in versions)
    rows = [
        ["versions", packages],
        ["cpu", f"{machine.get('cpu', 'unknown')}, {machine.get('cores', '?')} cores, {machine.get('memory', '?')}"],
        ["gpu", _gpus(machine)],
        ["bandwidth", _bandwidth(report)],
    ]
    lines = table([Column(), Column(prose=True)], rows, screen)
    problems = [
        line for problem in report.problems for line in fold(problem, screen.columns - 2 if screen.columns else 0)
    ]
    heading = screen.paint("Problems", "bold", "yellow") if problems else screen.paint("No problems found.", "green")
    choices = _choices(report, screen)
    room = SCREENFUL - 5 - len(lines) - len(choices)  # two empty lines, the heading, the last line, the prompt
    cut = len(problems) > max(1, room)
    shown = problems[: max(1, room - 1)] if cut else problems
    lines += ["", heading, *(f"  {line}" for line in shown), *(["  ..."] if cut else []), "", *choices]
    more = "Every version, choice and reason: tokendyno doctor --verbose"
    return [*lines, screen.paint(more, "dim")]


def _gpus(machine: dict[str, str]) -> str:
    """Equal GPUs are counted; without one, why none is used."""
    cards = [value for name, value in machine.items() if name[:3] == "gpu" and name[3:].isdecimal()]
    if not cards:
        return machine.get("gpu") or "none"
    counted = [f"{cards.count(card)} x {card}" if cards.count(card) > 1 else card for card in dict.fromkeys(cards)]
    driver = f"; driver {machine['driver']}" if "driver" in machine else ""
    return "; ".join(counted) + driver


def _bandwidth(report: Report) -> str:
    if report.bandwidth is not None:
        return f"{report.bandwidth.read_bytes_per_s / 1e9:,.4g} GB/s read from memory, measured"
    return report.bandwidth_problem or "not measured yet: tokendyno doctor --bandwidth"


def _choices(report: Report, screen: Screen) -> list[str]:
    """How many choices of each axis run, and the names of those that do not, one line an axis."""
    if not report.choices:
        return []
    usable = sum(row.usable for row in report.choices)
    heading = f"{usable} of {len(report.choices)} choices run for {DEFAULT_MODEL} on this machine. These do not:"
    rows = []
    for axis in dict.fromkeys(row.axis for row in report.choices):
        found = [row.choice for row in report.choices if row.axis == axis and not row.usable]
        if found:
            rows.append([axis, _some(found, _NAMES)])
    lines = [screen.paint(line, "bold") for line in fold(heading, screen.columns)]
    return [*lines, *table([Column(), Column(prose=True)], rows, screen, indent=2)]


def _some(names: Sequence[str], width: int) -> str:
    """As many names as there is room for, and how many more there are."""
    shown: list[str] = []
    for i, name in enumerate(names):
        more = len(names) - i - 1
        tail = f" and {more} more" if more else ""
        if len(", ".join([*shown, name])) + len(tail) > width:
            return ", ".join(shown) + f" and {len(names) - i} more"
        shown.append(name)
    return ", ".join(shown)


# --- all of it ------------------------------------------------------------------------------------


def _everything(report: Report, screen: Screen) -> list[str]:
    def section(title: str, rows: Sequence[Sequence[str]]) -> list[str]:
        return [screen.paint(title, "bold"), *table([Column(), Column(prose=True)], rows, screen, indent=2), ""]

    lines = [*section("Machine", list(report.machine.items())), *section("Versions", list(report.versions.items()))]
    lines += section("Problems", [["", problem] for problem in report.problems] or [["", "none found"]])
    found = report.bandwidth
    if found is not None:
        rates = (("read", found.read_bytes_per_s), ("copy", found.copy_bytes_per_s))
        rows = [*([name, f"{rate / 1e9:,.4g} GB/s"] for name, rate in rates), ["method", found.method]]
        lines += section(f"Memory bandwidth of {found.device}", rows)
    elif report.bandwidth_problem:
        lines += section("Memory bandwidth", [["", f"n/a: {report.bandwidth_problem}"]])
    if report.bandwidth_note:
        lines += [*fold(report.bandwidth_note, screen.columns), ""]
    lines.append(screen.paint("Limits of visitors, by mode", "bold"))
    limits = [["", *LIMITS], *([name, *cells] for name, cells in limit_rows())]
    lines += [*table([Column()] * (1 + len(LIMITS)), limits, screen, indent=2), ""]
    lines.append(screen.paint(f"Choices for {DEFAULT_MODEL} on this machine", "bold"))
    rows = [
        [
            f"{row.axis}={row.choice}",
            screen.paint("yes", "green") if row.usable else screen.paint("no", "yellow"),
            row.why,
        ]
        for row in report.choices
    ]
    return [*lines, *table([Column(), Column(), Column(below=True)], rows, screen, indent=2)]
