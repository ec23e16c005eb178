"""The ledgers of a run for a terminal: the rows that differ or are not verified, and all of them on demand."""

from collections.abc import Mapping, Sequence

from backend.evidence import Status
from backend.optimizations import all_axes
from backend.runs.snapshot import Snapshot
from backend.terminal import Column, Screen, fold, table
from backend.terminal.screen import Style
from backend.views.ledger import LedgerRow, ledger_digest, prompt_rows

_STATUS: dict[Status, tuple[str, Style]] = {
    "verified": ("verified", "green"), "unchecked": ("unchecked", "dim"), "partial": ("PARTIAL", "yellow"),
    "no_effect": ("NO EFFECT", "yellow"), "fallback": ("FALLBACK", "yellow"), "failed": ("NOT IN EFFECT", "red"),
    "off": ("off", "dim"), "not_applicable": ("not applicable", "dim"),
}  # fmt: skip


def ledger_table(run: Snapshot, screen: Screen, everything: bool) -> list[str]:
    """One line for all ledgers, then the rows that need a look, or with `everything` all rows, those first."""
    arms = {name: prompt_rows(run.ledger(name)) for name in run.arms}
    digest = ledger_digest(arms)
    if digest is None:
        return []
    axes = list(dict.fromkeys(row.axis for rows in arms.values() for row in rows))
    first = [axis for axis in axes if axis in digest.shown or (len(arms) == 1 and _chosen(arms, axis))]
    shown = [*first, *(axis for axis in axes if axis not in first)] if everything else first
    lines = fold(f"Ledger: {digest.line}", screen.columns)
    if shown:
        lines += _rows(arms, shown, screen)
    more = len(axes) - len(shown)
    if more:
        rest = f"{more} more rows are as planned; --all shows them."
        lines.append(screen.paint(rest if more > 1 else "1 more row is as planned; --all shows it.", "dim"))
    return lines


def _chosen(arms: Mapping[str, Sequence[LedgerRow]], axis: str) -> bool:
    """Whether an arm asked for something other than the default."""
    defaults = {one.name: one.default for one in all_axes()}
    return any(
        row.axis == axis and row.requested != defaults.get(axis, row.requested)
        for rows in arms.values()
        for row in rows
    )


def _rows(arms: Mapping[str, Sequence[LedgerRow]], axes: Sequence[str], screen: Screen) -> list[str]:
    columns = [Column("axis"), Column("arm"), Column("requested -> planned -> effective", prose=True),
               Column("status"), Column(below=True)]  # fmt: skip
    cells = []
    for axis in axes:
        title = axis
        for name, rows in arms.items():
            for row in (row for row in rows if row.axis == axis):
                word, style = _STATUS[row.status]
                below = "\n".join(filter(None, [row.proof, row.reason]))
                cells.append([title, name, steps(row), screen.paint(word, style), below])
                title = ""
    return table(columns, cells, screen, indent=2)


def steps(row: LedgerRow) -> str:
    """What was requested, planned and found; what is the same to the end is written once."""
    if row.requested == row.planned == row.effective:
        return row.effective
    if row.planned == row.effective:
        return f"{row.requested} -> {row.effective}"
    return f"{row.requested} -> {row.planned} -> {row.effective}"
