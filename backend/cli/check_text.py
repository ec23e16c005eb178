"""What `tokendyno check` says for a terminal."""

from backend.arms.check import Checked
from backend.optimizations import all_axes
from backend.terminal import Column, Screen, fold, table
from backend.terminal.screen import Style
from backend.units import bytes_text

_LEVELS: dict[str, Style] = {"blocked": "red", "fallback": "yellow", "note": "cyan"}


def check_text(checked: Checked, screen: Screen, everything: bool) -> str:
    """Whether the arm would run, its memory, choices that are no defaults or are planned otherwise, every verdict."""
    defaults = {axis.name: axis.default for axis in all_axes()}
    planned = checked.planned
    rows = [
        [axis, choice, planned[axis] if planned[axis] != choice else ""]
        for axis, choice in checked.requested.items()
        if everything or choice != defaults[axis] or planned[axis] != choice
    ]
    predicted, free = (" ".join(bytes_text(size)) for size in (checked.needed_bytes, checked.room_bytes))
    runs = "This arm would be refused." if checked.blocked else "This arm would run."
    lines = [screen.paint(runs, "bold", "red" if checked.blocked else "green")]
    margin = f" \u00b1 {checked.memory.margin:.0%}" if checked.memory.margin else ""
    lines += fold(f"Memory: {predicted}{margin} predicted, {free} free.", screen.columns)
    if rows:
        lines += ["", *table([Column("axis"), Column("requested"), Column("planned")], rows, screen)]
    rest = len(checked.requested) - len(rows)
    if rest:
        lines.append(screen.paint(f"{rest} more axes are at their defaults; --all shows them.", "dim"))
    for verdict in checked.verdicts:
        fix = ", ".join(f"{axis}={choice}" for axis, choice in verdict.fix.items())
        source = f" Source: {verdict.source}" if verdict.source else ""
        said = f"{verdict.level}: {verdict.reason}" + (f" Fix: {fix}." if fix else "") + source
        first, *more = fold(said, screen.columns)
        level, sign, tail = first.partition(":")
        lines += ["", screen.paint(level, _LEVELS.get(verdict.level, "bold")) + sign + tail, *more]
    return "\n".join(lines)
