"""Runs of the history as text for a terminal."""

import time
from collections.abc import Sequence

from backend.history.figures import Cell
from backend.history.pins import SideBySide
from backend.history.rows import Found, Row
from backend.redact import plain
from backend.runs.row import ArmText
from backend.terminal import Column, Screen, fold, table

_COLUMNS = (
    Column("run"), Column("when"), Column("model", prose=True), Column("arms", prose=True),
    Column("machine", prose=True, optional=True), Column(below=True),
)  # fmt: skip


def history_table(found: Found, screen: Screen) -> str:
    """A line for each run with its verdict under it, and how many there are."""
    if not found.kept:
        return "\n".join(fold("No run is kept yet. `tokendyno compare` makes one, and so does Run on the page.",
                              screen.columns))  # fmt: skip
    if not found.total:
        return f"None of {found.kept:,} runs matches. Leave a filter out."
    rows = [
        [row.id[:8], when(row.created), model_text(row), arms_text(row.arms), row.machine, line_text(row)]
        for row in found.rows
    ]
    first = found.page * found.per_page
    shown = f"Runs {first + 1:,} to {first + len(rows):,} of {found.total:,}" if rows else f"{found.total:,} runs"
    more = f"; --page {found.page + 2} shows the next" if first + len(rows) < found.total else ""
    past = "" if rows else f", and none on page {found.page + 1:,}"
    return "\n".join([*table(_COLUMNS, rows, screen), "", *fold(f"{shown}{past}{more}.", screen.columns)])


def head_text(row: Row, screen: Screen) -> list[str]:
    """What the history says of one run."""
    lines = [f"Run {row.id}, {when(row.created)}, {row.status}"]
    lines += [f"Name: {row.name}"] if row.name else []
    lines += [f"Note: {row.note}"] if row.note else []
    return [part for line in lines for part in fold(line, screen.columns)]


def pins_table(found: SideBySide, screen: Screen) -> str:
    """Arms side by side: who they are, what else differs, and the table."""
    lines = []
    for head in found.arms:
        lines += fold(f"{head.label}: {head.title}, arm {head.arm} of run {head.run[:8]} ({when(head.created)}): "
                      f"{head.choices}", screen.columns)  # fmt: skip
    if found.missing:
        lines += fold(f"Not kept here: {', '.join(found.missing)}.", screen.columns)
    lines += ["", *(line for text in found.remarks for line in fold(text, screen.columns))]
    columns = [Column(), *(Column(head.label, prose=True) for head in found.arms), Column()]
    for group in ("conditions", "choices", "figures", "ledger"):
        rows = [
            [
                row.label,
                *(_cell(cell) for cell in row.cells),
                "differs" if row.differs and group == "conditions" else "",
            ]
            for row in found.rows
            if row.group == group
        ]
        lines += ["", *table(columns, rows, screen)] if rows else []
    for row in found.rows:
        if row.group == "text":
            for head, cell in zip(found.arms, row.cells, strict=True):
                lines += ["", *fold(f"Text of {head.label}: {cell.text or '(none)'}", screen.columns)]
    return "\n".join(lines)


def when(created: float) -> str:
    """A moment in this machine's time."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(created))
    except (ValueError, OverflowError, OSError):
        return "unknown"


def model_text(row: Row) -> str:
    """The model of a run, and what it had to do."""
    return ", ".join(filter(None, [row.label or row.model, row.work]))


def arms_text(arms: Sequence[ArmText]) -> str:
    """The arms of a run on a line."""
    return plain("; ".join(f"{arm.name}: {arm.text}" for arm in arms))


def line_text(row: Row) -> str:
    """Its name, and what it came to."""
    ended = "" if row.status == "done" else f"{row.status}. "
    said = f"{ended}{row.line or ''}".strip()
    return plain(": ".join(filter(None, [row.name, said])))


def _cell(cell: Cell) -> str:
    return f"{cell.text} ({cell.against})" if cell.against else cell.text
