"""Tables with aligned columns that fit the terminal, and folded text.

A table that is too wide gives way in this order: headings fold to the width of their cells, then columns of prose fold,
then columns that may be missing are left out, from the right, then names fold too, and at last any column but the first
is left out. A last line says which are missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from backend.terminal.screen import Screen, width_of

GAP = 2
LEAST_PROSE = 16
"""A column of prose folds no narrower than this."""

LEAST_NAMES = 12
"""Nor a column of names, which are broken anywhere."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    right      its cells are numbers, and end at the same place
    prose      its cells may fold
    below      its cells are remarks: each stands under its row, indented, over the whole width
    optional   on a narrow terminal the table may do without it
    """

    heading: str = ""
    right: bool = False
    prose: bool = False
    below: bool = False
    optional: bool = False


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], screen: Screen, indent: int = 0) -> list[str]:
    """The lines of a table; cells may be painted, those of prose may not. Without headings no line of them."""
    room = screen.columns - indent if screen.columns else 0
    inside = [i for i, column in enumerate(columns) if not column.below]
    kept, widths = _fitting(columns, rows, inside, room)
    lines = _heading(columns, kept, widths, screen)
    for row in rows:
        lines += _line([columns[i] for i in kept], [row[i] for i in kept], widths)
        for i, column in enumerate(columns):
            if column.below and row[i]:
                lines += [" " * 4 + line for line in fold(row[i], room - 4 if room else 0)]
    missing = [columns[i].heading for i in inside if i not in kept]
    if missing:
        lines += fold(f"Left out at {screen.columns} columns: {', '.join(missing)}.", room)
    return [(" " * indent + line).rstrip() for line in lines]


def fold(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns, broken between words, and inside a word that is wider. 0: no line is broken."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        first, *words = paragraph.split(" ")
        *whole, line = _pieces(first, width)
        lines += whole
        used = width_of(line)
        for word in words:
            more = 1 + width_of(word)
            if not width or used + more <= width:
                line, used = f"{line} {word}", used + more
                continue
            *whole, begun = _pieces(word, width)
            lines += [line, *whole]
            line, used = begun, width_of(begun)
        lines.append(line)
    return lines


def _pieces(word: str, width: int) -> list[str]:
    """A word, cut where it is wider than a line."""
    if not width or width_of(word) <= width:
        return [word]
    pieces, used = [""], 0
    for letter in word:
        more = width_of(letter)
        if pieces[-1] and used + more > width:
            pieces.append("")
            used = 0
        pieces[-1] += letter
        used += more
    return pieces


def _fitting(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], inside: Sequence[int], room: int
) -> tuple[list[int], list[int]]:
    """Which columns are shown, and how wide each is."""
    cells = {i: max((width_of(row[i]) for row in rows), default=0) for i in inside}
    words = {i: max(map(width_of, columns[i].heading.split()), default=0) for i in inside}
    kept = list(inside)
    names: set[int] = set()
    while True:
        widths = {i: max(cells[i], width_of(columns[i].heading)) for i in kept}
        over = sum(widths.values()) + GAP * (len(kept) - 1) - room if room else 0
        for least in (
            {i: max(cells[i], words[i]) for i in kept},
            {i: max(min(cells[i], LEAST_PROSE), words[i]) for i in kept if columns[i].prose},
            {i: max(min(cells[i], LEAST_NAMES), words[i]) for i in kept if i in names},
        ):
            for i in sorted(least, key=lambda i: least[i] - widths[i]):
                give = max(0, min(over, widths[i] - least[i]))
                widths[i], over = widths[i] - give, over - give
        if over <= 0:
            return kept, [widths[i] for i in kept]
        spare = [i for i in kept if columns[i].optional]
        if not spare and not names:
            names = {i for i in kept if not columns[i].right and not any("\x1b" in row[i] for row in rows)}
        elif spare or len(kept) > 1:
            kept.remove((spare or kept)[-1])
        else:
            return kept, [widths[i] for i in kept]


def _heading(columns: Sequence[Column], kept: Sequence[int], widths: Sequence[int], screen: Screen) -> list[str]:
    shown = [columns[i] for i in kept]
    if not any(column.heading for column in shown):
        return []
    folded = [fold(column.heading, width) for column, width in zip(shown, widths, strict=True)]
    height = max(map(len, folded))
    padded = [[""] * (height - len(lines)) + lines for lines in folded]  # headings stand on the first row
    return [
        screen.paint(line.rstrip(), "bold")
        for line in (_padded(shown, [lines[k] for lines in padded], widths) for k in range(height))
    ]


def _line(columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    """One row, on as many lines as its longest folded cell."""
    folded = [
        fold(cell, width) if column.prose or width_of(cell) > width else [cell]
        for column, cell, width in zip(columns, cells, widths, strict=True)
    ]
    height = max(map(len, folded))
    return [_padded(columns, [lines[k] if k < len(lines) else "" for lines in folded], widths) for k in range(height)]


def _padded(columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int]) -> str:
    parts = []
    for column, cell, width in zip(columns, cells, widths, strict=True):
        blank = " " * (width - width_of(cell))
        parts.append(blank + cell if column.right else cell + blank)
    return (" " * GAP).join(parts)
