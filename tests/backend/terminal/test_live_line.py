"""A line that is replaced on a terminal, and one line a change in a file."""

import io

import pytest

from backend.terminal import Screen
from backend.terminal.live_line import WIPE, LiveLine, bar, bar_letters
from tests.backend.terminal.test_screen import Terminal


def test_a_terminal_gets_one_line_that_is_wiped_even_after_an_error() -> None:
    stream = Terminal()
    with pytest.raises(KeyboardInterrupt), LiveLine(stream, Screen(40)) as line:
        for text in ("load", "load", "x" * 100):
            line.show(text)
        raise KeyboardInterrupt
    assert stream.getvalue() == f"{WIPE}load{WIPE}{'x' * 39}{WIPE}", "one column is free, so that nothing wraps"


def test_a_terminal_to_which_nothing_was_written_stays_as_it_was() -> None:
    stream = Terminal()
    with LiveLine(stream, Screen(40)):
        pass
    assert stream.getvalue() == ""


def test_a_file_gets_a_line_for_each_change_and_no_code() -> None:
    stream = io.StringIO()
    with LiveLine(stream, Screen()) as line:
        for text in ("load", "load", "x" * 100):
            line.show(text)
    assert stream.getvalue() == f"load\n{'x' * 100}\n"


@pytest.mark.parametrize(
    ("fraction", "drawn"), [(0, "──────"), (0.5, "━━━───"), (1, "━━━━━━"), (7, "━━━━━━"), (-1, "──────")]
)
def test_a_bar_keeps_its_width(fraction: float, drawn: str) -> None:
    assert bar(fraction, 6) == drawn


def test_a_bar_is_written_in_letters_that_the_terminal_has() -> None:
    assert (bar_letters("utf-8"), bar_letters("ascii"), bar_letters(None)) == ("━─", "#-", "#-")
    assert bar(0.5, 4, "#-") == "##--"
