"""Which width and which colours a stream gets."""

import io
from collections.abc import Mapping

import pytest

from backend.terminal.screen import LEAST_COLUMNS, Screen, screen_of, width_of


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "option", "env", "color"),
    [
        (Terminal(), "auto", {}, True),
        (Terminal(), "auto", {"NO_COLOR": "1"}, False),
        (Terminal(), "auto", {"NO_COLOR": ""}, True),  # only a value counts, says no-color.org
        (Terminal(), "auto", {"TERM": "dumb"}, False),
        (Terminal(), "always", {"NO_COLOR": "1"}, True),
        (Terminal(), "never", {}, False),
        (io.StringIO(), "auto", {}, False),
        (io.StringIO(), "always", {}, True),
        (None, "auto", {}, False),
    ],
)
def test_colours_are_for_terminals_and_for_who_asks(
    stream: io.StringIO | None, option: str, env: Mapping[str, str], color: bool
) -> None:
    assert screen_of(stream, option, env).color is color  # type: ignore[arg-type]


def test_a_file_has_no_width_unless_one_is_set() -> None:
    assert screen_of(io.StringIO(), env={}).columns == 0
    assert screen_of(io.StringIO(), env={"COLUMNS": "100"}).columns == 100
    assert screen_of(Terminal(), env={"COLUMNS": "3"}).columns == LEAST_COLUMNS
    assert screen_of(Terminal(), env={"COLUMNS": "wide"}).columns >= LEAST_COLUMNS


def test_paint_writes_codes_only_where_colours_are_on() -> None:
    assert Screen().paint("yes", "green") == "yes"
    assert Screen(color=True).paint("yes", "bold", "green") == "\x1b[1;32myes\x1b[0m"
    assert Screen(color=True).paint("", "green") == "" and Screen(color=True).paint("yes") == "yes"


@pytest.mark.parametrize(
    ("text", "columns"), [("abc", 3), ("µs ±", 4), ("日本", 4), ("e\u0301", 1), ("\x1b[1;32mok\x1b[0m", 2), ("", 0)]
)
def test_width_is_that_of_the_terminal(text: str, columns: int) -> None:
    assert width_of(text) == columns
