"""The log: what this process writes to standard error, of which visitors can cause as much as they like.

Each event that Gradio cannot carry out takes about forty lines, written past `logging`; so does each connection that
finds no file descriptor left.
"""

import io
import threading
import time
from collections.abc import Callable
from typing import TextIO

MAX_CHARACTERS = 64 * 1024
PER_S = 60.0

LEFT_OUT = "tokendyno: the log is full; what else comes in this minute is left out\n"


class BoundedLog(io.TextIOBase):
    """Passes on at most `MAX_CHARACTERS` in `PER_S` seconds, and says once in that time that more was left out."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._lock = threading.Lock()
        self._until_s, self._written, self._full = 0.0, 0, False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        if not self._stream.closed:  # Python flushes this object once more when it is freed
            self._stream.flush()

    def write(self, text: str) -> int:
        with self._lock:
            now_s = self._clock()
            if now_s >= self._until_s:
                self._until_s, self._written, self._full = now_s + PER_S, 0, False
            if not self._full and self._written + len(text) > MAX_CHARACTERS:
                self._full = True
                self._stream.write(LEFT_OUT)
            if not self._full:
                self._written += len(text)
                self._stream.write(text)
        return len(text)
