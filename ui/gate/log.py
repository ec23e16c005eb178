"""The log: what this process writes to standard error, of which visitors can cause as much as they like.

Each event that Gradio cannot carry out takes about forty lines, written past `logging`; so does each connection that
finds no file descriptor left.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, TextIO

MAX_CHARACTERS = 64 * 1024
PER_S = 60.0

LEFT_OUT = "tokendyno: the log is full; what else comes in this minute is left out\n"


class BoundedLog:
    """Passes on at most `MAX_CHARACTERS` in `PER_S` seconds, and says once in that time that more was left out. What
    else is asked of it, its stream does."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._lock = threading.Lock()
        self._until_s, self._written, self._full = 0.0, 0, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

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
