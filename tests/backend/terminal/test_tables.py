"""Tables: aligned, and no wider than the terminal."""

import pytest

from backend.terminal import Column, Screen, fold, table, tables
from backend.terminal.screen import width_of

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


def test_numbers_end_and_texts_begin_at_the_same_place() -> None:
    assert table(COLUMNS, ROWS, Screen()) == [
        "Cache    Time per token  Note                                                 Source",
        "dynamic         9.81 ms  as predicted                                         a page",
        "静的            10.2 ms  the same text, and a good deal more to say about it  another page",
        "    It was slow.",
    ]


def test_a_table_without_prose_fits_too_and_says_what_it_leaves_out() -> None:
    columns = [Column("Parameter"), Column("How"), *(Column(name, right=True) for name in ("Shape", "Rank 0", "Bytes"))]
    rows = [["model.layers.*.mlp.experts.gate_up_proj", "part of the vocabulary", *["3,072 x 192"] * 3]]
    lines = table(columns, rows, Screen(60))
    assert max(map(width_of, lines)) <= 60 and lines[-1] == "Left out at 60 columns: Bytes."
    assert "".join(line.split("  ")[0] for line in lines[1:-1]) == rows[0][0]


def test_a_narrow_terminal_folds_prose_then_leaves_out_what_is_optional_and_says_so() -> None:
    assert table(COLUMNS, ROWS, Screen(60)) == [
        "            Time",
        "             per",
        "Cache      token  Note                          Source",
        "dynamic  9.81 ms  as predicted                  a page",
        "静的     10.2 ms  the same text, and a good     another page",
        "                  deal more to say about it",
        "    It was slow.",
    ]
    narrow = table(COLUMNS, ROWS, Screen(42))
    assert narrow[-1] == "Left out at 42 columns: Source." and not any("another page" in line for line in narrow)


@pytest.mark.parametrize("columns", range(40, 130))
def test_no_line_is_wider_than_the_terminal_and_no_word_is_lost(columns: int) -> None:
    lines = table(COLUMNS, ROWS, Screen(columns), indent=2)
    assert all(width_of(line) <= columns for line in lines)
    shown = " ".join(lines).split()
    assert all(word in shown for row in ROWS for cell in (row[0], row[2], row[4]) for word in cell.split())


def test_folding_measures_each_letter_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []

    def counted(text: str) -> int:
        measured.append(len(text))
        return width_of(text)

    monkeypatch.setattr(tables, "width_of", counted)
    long = "a" * 3_000 + " word" * 600 + " 静的" * 50
    for width in (0, 40, 5_000):
        lines = fold(long, width)
        assert "".join(lines).replace(" ", "") == long.replace(" ", "")
        assert not width or all(width_of(line) <= width for line in lines)
    assert sum(measured) < 12 * len(long)


def test_colours_take_no_room() -> None:
    screen = Screen(color=True)
    painted = table([Column("a"), Column("b")], [[screen.paint("x", "red"), "y"], ["xxx", "y"]], screen)
    assert painted == ["\x1b[1ma    b\x1b[0m", "\x1b[31mx\x1b[0m    y", "xxx  y"]


def test_a_table_without_headings_or_rows() -> None:
    assert table([Column(), Column()], [["a", "b"]], Screen()) == ["a  b"]
    assert table([Column("a")], [], Screen()) == ["a"]


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("日本語", 4, ["日本", "語"]),
        ("a\nb", 10, ["a", "b"]),
        ("one two", 0, ["one two"]),
        ("  indented", 20, ["  indented"]),
        ("", 5, [""]),
    ],
)
def test_folding(text: str, width: int, lines: list[str]) -> None:
    assert fold(text, width) == lines
