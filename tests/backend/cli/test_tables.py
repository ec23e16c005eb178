"""Tables and texts fit the terminal; colours are for those who want them; a line of progress is wiped."""

import io

import pytest
from rich.cells import cell_len

from tests.support.command_line import text_of
from tokendyno.backend.cli.terminal import (
    LEAST_COLUMNS,
    UNFOLDED,
    WIPE,
    Color,
    Column,
    LiveLine,
    Styled,
    Table,
    Verbatim,
    console_of,
)

COLUMNS = [
    Column("Cache"),
    Column("Time per token", right=True),
    Column("Note", prose=True),
    Column("Source", optional=True),
    Column("Remark", below=True),
]
ROWS = [
    ["dynamic", "9.81 ms", "as predicted", "a page", ""],
    ["静的", "10.2 ms", "the same text, and a good deal more to say about it", "another page", "It was slow."],
]
TABLE = Table(COLUMNS, ROWS)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def lines_of(table: Table, columns: int = UNFOLDED) -> list[str]:
    return text_of([[table]], columns).split("\n")


@pytest.mark.parametrize(
    ("stream", "option", "env", "color"),
    [
        (Terminal(), "auto", {}, True),
        (Terminal(), "auto", {"NO_COLOR": "1"}, False),
        (Terminal(), "always", {"NO_COLOR": "1"}, True),
        (Terminal(), "never", {}, False),
        (io.StringIO(), "auto", {}, False),
        (io.StringIO(), "auto", {"FORCE_COLOR": "1"}, True),
        (io.StringIO(), "always", {}, True),
    ],
)
def test_colours_are_for_terminals_and_for_who_asks(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, option: Color, env: dict[str, str], color: bool
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    with (console := console_of(stream, option)).capture() as shown:
        console.print("yes", style="green")
    assert shown.get() == ("\x1b[32myes\x1b[0m\n" if color else "yes\n")


@pytest.mark.parametrize(
    ("stream", "columns", "width"),
    [
        (io.StringIO(), "", UNFOLDED),
        (io.StringIO(), "100", 100),
        (Terminal(), "3", LEAST_COLUMNS),
        (Terminal(), "", 80),
    ],
)
def test_a_file_has_no_width_unless_one_is_set(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, columns: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert console_of(stream).width == width


def test_numbers_end_and_texts_begin_at_the_same_place() -> None:
    assert lines_of(TABLE) == [
        "Cache    Time per token  Note                                                 Source",
        "dynamic         9.81 ms  as predicted                                         a page",
        "静的            10.2 ms  the same text, and a good deal more to say about it  another page",
        "    It was slow.",
    ]


def test_a_table_without_prose_fits_too_and_says_what_it_leaves_out() -> None:
    columns = [Column("Parameter"), Column("How"), *(Column(name, right=True) for name in ("Shape", "Rank 0", "Bytes"))]
    rows = [["model.layers.*.mlp.experts.gate_up_proj", "part of the vocabulary", *["3,072 x 192"] * 3]]
    lines = lines_of(Table(columns, rows), 60)
    assert max(map(cell_len, lines)) <= 60 and lines[-1] == "Left out at 60 columns: Bytes."
    assert "".join(line.split("  ")[0] for line in lines[1:-1]) == rows[0][0]


@pytest.mark.parametrize("columns", range(40, 130, 3))
def test_no_line_is_wider_than_the_terminal_and_no_word_is_lost(columns: int) -> None:
    lines = lines_of(Table(COLUMNS, ROWS, indent=2), columns)
    assert all(cell_len(line) <= columns for line in lines)
    shown = " ".join(lines).split()
    assert all(word in shown for row in ROWS for cell in (row[0], row[2], row[4]) for word in cell.split())


def test_remarks_stand_beside_their_row_only_where_there_is_room() -> None:
    table = Table([Column(), Column(prose=True, below_under=80)], [["Peak", "as predicted"], ["KV", "less"]])
    assert lines_of(table, 80) == ["Peak  as predicted", "KV    less"]
    assert lines_of(table, 79) == ["Peak", "    as predicted", "KV", "    less"]


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("日本語", 4, "日本\n語"),
        ("  indented", 20, "  indented"),
        ("[bold]no markup[/bold] :smile:", 40, "[bold]no markup[/bold] :smile:"),
        (Verbatim("tokendyno run"), 5, "tokendyno run"),
        (Styled("blocked", "red", ": why it is so"), 14, "blocked: why\nit is so"),
    ],
)
def test_folding(text: str | Styled, width: int, shown: str) -> None:
    assert text_of([[text]], width) == shown


def test_a_terminal_gets_one_line_that_is_wiped_even_after_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    stream = Terminal()
    with pytest.raises(KeyboardInterrupt), LiveLine(stream) as line:
        for text in ("load", "load", "静" * 100):
            line.show(text)
        raise KeyboardInterrupt
    assert stream.getvalue() == f"{WIPE}load{WIPE}{'静' * 19}{WIPE}", "one column is free, so that nothing wraps"


def test_a_file_gets_a_line_for_each_change_and_no_code() -> None:
    stream = io.StringIO()
    with LiveLine(stream) as line:
        for text in ("load", "load", "x" * 100):
            line.show(text)
    assert stream.getvalue() == f"load\n{'x' * 100}\n"
