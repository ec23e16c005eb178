"""What commands print: folded text and tables that fit the terminal, drawn by rich, and a line of progress."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Literal, NamedTuple, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.segment import Segment

Color = Literal["auto", "always", "never"]
LEAST_COLUMNS = 40
"""Narrower terminals are written to as if they had this many columns: they fold the lines themselves."""

UNFOLDED = 1 << 30
"""Columns of a file or a pipe: no line is folded there."""

GAP = 2
LEAST_PROSE = 16
"""A column of prose folds no narrower than this."""

LEAST_NAMES = 12
"""Nor a column of names, which are broken anywhere; where even that is too wide, nor one of prose."""

WIPE = "\r\x1b[K"


class Styled(NamedTuple):
    """A text in a style of rich, such as `bold green`, and `rest`, which follows it without one."""

    text: str
    style: str
    rest: str = ""


class Verbatim(str):
    """A line to be copied: it is never folded."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    prose        its cells are folded between words; others are names, which fold last and anywhere
    below        its cells are remarks: each stands under its row, indented, over the whole width
    below_under  they do so on terminals with fewer columns than this
    optional     left out first on a narrow terminal
    """

    heading: str = ""
    right: bool = False
    prose: bool = False
    below: bool = False
    optional: bool = False
    below_under: int = 0


Cell = str | Styled
Row = Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Table:
    """Aligned columns. Where they are too wide they fold, and those from the right are left out."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    indent: int = 0


Line = str | Styled | Table
Block = Sequence[Line]


def console_of(stream: TextIO | None, color: Color = "auto") -> "Console":
    """The console behind a stream; `auto` colours terminals only, and none with NO_COLOR (https://no-color.org)."""
    from rich.console import Console

    colorless = color == "never" or (color == "auto" and os.environ.get("NO_COLOR"))
    system: Literal["standard", "auto"] | None = None if colorless else "standard" if color == "always" else "auto"
    console = Console(
        file=stream,
        color_system=system,
        no_color=False,
        force_terminal=True if color == "always" else None,
        markup=False,
        highlight=False,
        emoji=False,
    )
    folds = (stream is not None and stream.isatty()) or os.environ.get("COLUMNS", "").isdecimal()
    console.width = max(LEAST_COLUMNS, console.width) if folds else UNFOLDED
    return console


def drawn(blocks: Iterable[Block], console: "Console") -> str:
    """The text of blocks, with an empty line between two, as a console of this width and these colours shows it."""
    from rich.segment import Segments
    from rich.text import Text

    with console.capture() as captured:
        for number, block in enumerate(filter(None, blocks)):
            if number:
                console.print()
            for line in block:
                if isinstance(line, Table):
                    console.print(Segments(_segments(line, console)), end="", crop=False)
                elif isinstance(line, Styled):
                    console.print(Text.assemble((line.text, line.style), line.rest))
                else:
                    console.print(line, soft_wrap=isinstance(line, Verbatim))
    return "\n".join(map(_trimmed, captured.get().removesuffix("\n").split("\n")))


def _trimmed(line: str) -> str:
    """A line without the blanks at its end, which folding between words and padding a cell leave."""
    end = "\x1b[0m" if line.endswith("\x1b[0m") else ""
    return line.removesuffix(end).rstrip(" ") + end


def show(blocks: Iterable[Block], color: Color = "auto") -> None:
    """Print blocks to standard output. What has no lines prints nothing."""
    text = drawn(blocks, console_of(sys.stdout, color))
    if text:
        print(text)


def _segments(table: Table, console: "Console") -> Iterator["Segment"]:
    """The lines of a table, each remark under its row. The style of a row carries its number, by which its lines are
    found."""
    from rich.cells import cell_len
    from rich.segment import Segment
    from rich.style import Style
    from rich.table import Table as Grid
    from rich.text import Text

    room = console.width - table.indent
    below = {i for i, column in enumerate(table.columns) if column.below or console.width < column.below_under}
    beside = [i for i in range(len(table.columns)) if i not in below]

    def text_of(cell: Cell) -> Text:
        return Text(cell.text, cell.style) if isinstance(cell, Styled) else Text(cell)

    texts = {i: [text_of(row[i]) for row in table.rows] for i in beside}
    cells = {i: max((cell_len(text.plain) for text in texts[i]), default=0) for i in beside}
    shown, widths = _fitting(table, cells, room)
    headed = any(table.columns[i].heading for i in shown)
    grid = Grid(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold", show_header=headed)
    for i in shown:
        column = table.columns[i]
        justify: Literal["right", "left"] = "right" if column.right else "left"
        grid.add_column(column.heading, justify=justify, width=widths[i], overflow="fold")
    for number in range(len(table.rows)):
        grid.add_row(*(texts[i][number] for i in shown), style=Style(meta={"row": number}))

    def row_of(line: list[Segment]) -> int:
        """The number of the row that a line belongs to; -1: the headings."""
        return next((s.style.meta["row"] for s in line if s.style and "row" in s.style.meta), -1)

    margin = Segment(" " * table.indent)
    lines = console.render_lines(grid, console.options.update(width=room), pad=False) if shown else []
    for number, row_lines in groupby(lines, row_of):
        for line in row_lines:
            yield from (margin, *line, Segment.line())
        for remark in (table.rows[number][i] for i in sorted(below) if number >= 0):
            assert isinstance(remark, str)
            folded = console.render_lines(remark, console.options.update(width=room - 4), pad=False)
            for line in folded if remark else ():
                yield from (margin, Segment(" " * 4), *line, Segment.line())
    left_out = [table.columns[i].heading for i in beside if i not in shown and table.columns[i].heading]
    if left_out:
        yield from console.render(f"Left out at {console.width} columns: {', '.join(left_out)}.")


def _fitting(table: Table, cells: dict[int, int], room: int) -> tuple[list[int], dict[int, int | None]]:
    """Which columns are shown, and how wide each is (None: as rich folds it). `cells`: how wide the cells of each
    are without folds; `room`: how wide the table may be."""
    from rich.cells import cell_len

    columns, shown = table.columns, [*cells]
    words = {i: max(map(cell_len, columns[i].heading.split()), default=0) for i in cells}
    whole = {i: max(width, cell_len(columns[i].heading)) for i, width in cells.items()}
    names_fold = all_fold = False

    def least(i: int) -> int:
        if columns[i].right or not (columns[i].prose or names_fold):
            return max(cells[i], words[i])
        narrowest = LEAST_PROSE if columns[i].prose and not all_fold else LEAST_NAMES
        return max(min(cells[i], narrowest), words[i])

    def over(width: Callable[[int], int]) -> bool:
        return sum(map(width, shown)) + GAP * (len(shown) - 1) > room

    while over(least) and len(shown) > 1:
        optional = [i for i in shown if columns[i].optional]
        if optional or all_fold:
            shown.remove((optional or shown)[-1])
        else:
            names_fold, all_fold = True, names_fold
    if not over(whole.__getitem__):
        return shown, {i: whole[i] for i in shown}
    folding = {i for i in shown if not columns[i].right and (all_fold or columns[i].prose != names_fold)}
    return shown, {i: None if i in folding else least(i) for i in shown}


class LiveLine:
    """The last line of a terminal, written over and wiped at the end; in a file each line stays. A context manager."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._terminal, self._shown = stream, stream.isatty(), ""

    def show(self, text: str) -> None:
        """Put `text` in the place of what stands there, cut to the terminal: a line that wraps cannot be wiped."""
        if text == self._shown:
            return
        if self._terminal:
            from rich.cells import chop_cells

            pieces = chop_cells(text, console_of(self._stream).width - 1)
            self._stream.write(WIPE + "".join(pieces[:1]))
        else:
            self._stream.write(f"{text}\n")
        self._stream.flush()
        self._shown = text

    def wipe(self) -> None:
        if self._terminal and self._shown:
            self._stream.write(WIPE)
            self._stream.flush()
        self._shown = ""

    def __enter__(self) -> "LiveLine":
        return self

    def __exit__(self, *_: object) -> None:
        self.wipe()
