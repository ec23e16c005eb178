"""The last line of a terminal, replaced as time goes by, and wiped at the end. In a file or a pipe each line stays."""

from typing import TextIO

from backend.terminal.screen import Screen, width_of

WIPE = "\r\x1b[K"


class LiveLine:
    """A line that is written over. A context manager: what it wrote to a terminal is wiped, however it ends."""

    def __init__(self, stream: TextIO, screen: Screen) -> None:
        self._stream, self._terminal, self._shown = stream, stream.isatty(), ""
        self._columns = screen.columns

    def show(self, text: str) -> None:
        """Put `text` in the place of what stands there, cut to the terminal: a line that wraps cannot be wiped."""
        if text == self._shown:
            return
        if self._terminal:
            shown = text if not self._columns or width_of(text) < self._columns else cut(text, self._columns - 1)
            self._stream.write(f"{WIPE}{shown}")
        else:
            self._stream.write(f"{text}\n")
        self._stream.flush()
        self._shown = text

    def wipe(self) -> None:
        """Leave the terminal as it was."""
        if self._terminal and self._shown:
            self._stream.write(WIPE)
            self._stream.flush()
        self._shown = ""

    def __enter__(self) -> "LiveLine":
        return self

    def __exit__(self, *_: object) -> None:
        self.wipe()


def bar(fraction: float, width: int, text: str = "━─") -> str:
    """A bar of `width` columns; `text`: what stands for done and for to come."""
    done = round(max(0.0, min(1.0, fraction)) * width)
    return text[0] * done + text[1] * (width - done)


def bar_letters(encoding: str | None) -> str:
    """Letters of a bar that a stream of this encoding can write."""
    try:
        "━─".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return "#-"
    return "━─"


def cut(text: str, width: int) -> str:
    """At most `width` columns of a text without colours."""
    shown, used = "", 0
    for letter in text:
        used += width_of(letter)
        if used > width:
            return shown
        shown += letter
    return shown
