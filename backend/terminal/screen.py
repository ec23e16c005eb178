"""How wide a terminal is and whether it shows colours; how many columns a text takes."""

import os
import re
import shutil
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TextIO

Color = Literal["auto", "always", "never"]
Style = Literal["bold", "dim", "red", "green", "yellow", "cyan"]

_CODES: dict[Style, str] = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_PAINTED = re.compile(r"\x1b\[[0-9;]*m")
LEAST_COLUMNS = 40
"""Narrower terminals are written to as if they had this many columns: they fold the lines themselves."""


@dataclass(frozen=True, slots=True)
class Screen:
    """Where a command writes. `columns` is 0 for a file or a pipe: no line is folded there."""

    columns: int = 0
    color: bool = False

    def paint(self, text: str, *styles: Style) -> str:
        """The text in these styles, or as it is where colours are off."""
        if not (self.color and styles and text):
            return text
        return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m"


def screen_of(stream: TextIO | None, color: Color = "auto", env: Mapping[str, str] | None = None) -> Screen:
    """The screen behind a stream. `auto` colours terminals only, and none with NO_COLOR (https://no-color.org) or on a
    dumb terminal; COLUMNS sets a width, for files too."""
    env = os.environ if env is None else env
    terminal = stream is not None and stream.isatty()
    plain = bool(env.get("NO_COLOR")) or env.get("TERM") == "dumb"
    colored = color == "always" or (color == "auto" and terminal and not plain)
    asked = env.get("COLUMNS", "")
    columns = int(asked) if asked.isdecimal() else 0
    columns = columns or (_columns_of(stream) if terminal else 0)
    return Screen(max(LEAST_COLUMNS, columns) if columns else 0, colored)


def _columns_of(stream: TextIO | None) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns if stream else 0
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns


def width_of(text: str) -> int:
    """Columns that a text takes: wide characters take two, combining ones and colours none."""
    return sum(map(_columns, _PAINTED.sub("", text)))


def _columns(letter: str) -> int:
    if " " <= letter <= "~":
        return 1
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
