"""What fits, for a terminal: the answer, the main rows or all of them, and remarks."""

from backend.fit.row import Margin
from backend.fit.sharding import SHARDING_COLUMNS, Sharding, sharding_cells
from backend.fit.table import Fit
from backend.fit.text import best, cells, columns, heading, remarks
from backend.terminal import Column, Screen, fold, table
from backend.terminal.screen import Style

_STYLES: dict[Margin, Style] = {"comfortable": "green", "tight": "yellow", "does not fit": "red"}
_NUMBERS = {
    "Weights", "KV cache size", "Workspace", "Activations", "Runtime", "Peak", "Margin", "Longest context",
    "Longest input", "Bound per token", "Bound per pass",
}  # fmt: skip
_OPTIONAL = {
    "Workspace", "Activations", "Runtime", "Weights", "KV cache size", "Longest context", "Longest input", "Would do",
}  # fmt: skip
"""What a narrow terminal may leave out."""


def fit_text(found: Fit, screen: Screen, everything: bool = False) -> str:
    """The table with its heading, the answer and remarks; each line folded to the terminal."""
    shown = found.rows if everything else found.main
    headings = [Column(name, right=name in _NUMBERS, optional=name in _OPTIONAL) for name in columns(found)]
    rows = []
    for row in shown:
        sign, *rest = cells(found, row)
        remark = f"Would not run here: {row.not_here}" if found.device.here and row.not_here else ""
        rows.append([screen.paint(sign, _STYLES[row.margin]), *rest, remark])
    more = len(found.rows) - len(shown)
    rest = [f"{more} more rows, with other caches: --all"] if more else []
    answer = [screen.paint(line, "bold") for line in fold(best(found), screen.columns)]
    notes = [part for line in [*rest, "", *remarks(found)] for part in fold(line, screen.columns)]
    lines = [*fold(heading(found), screen.columns), *answer, ""]
    return "\n".join([*lines, *table([*headings, Column(below=True)], rows, screen), *notes]).rstrip()


def sharding_text(found: Sharding, screen: Screen) -> str:
    """How each parameter is split, with a line of sums."""
    columns = [Column(name, right=name not in ("Parameter", "How")) for name in SHARDING_COLUMNS]
    lines = [
        *fold(found.heading, screen.columns),
        "",
        *table(columns, [sharding_cells(row) for row in found.rows], screen),
    ]
    return "\n".join(lines).rstrip()
