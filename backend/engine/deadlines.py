"""How long each phase may go without progress."""

import os
import time

from tokendyno.backend.errors import InputError
from tokendyno.backend.messages import PartUse, PhaseName

DEADLINE_S: dict[PhaseName, float] = {
    "start": 120,
    "import": 120,
    "download": 300,
    "load": 600,
    "quantize": 600,
    "compile": 600,
    "warmup": 600,
    "run": 300,
    "prove": 300,
    "quality": 300,
}
"""Seconds without progress after which a phase is ended. TOKENDYNO_DEADLINE_S overrides all of them."""

TEXT_LIMIT_S: dict[PartUse, float] = {"render": 15, "tokenize": 30}
"""Seconds after which a worker that renders a chat template, or turns a text into tokens, is ended. Either takes
milliseconds; 1 MiB of text took 0.7 s. What a file of the model makes of a text may take for ever, in native code."""


def deadline_override_s() -> float | None:
    """TOKENDYNO_DEADLINE_S, or None where it is not set. InputError unless it is a positive number."""
    text = os.environ.get("TOKENDYNO_DEADLINE_S", "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InputError(
            f"TOKENDYNO_DEADLINE_S must be a positive number of seconds, not {text!r}. Set it to 600, say, or unset it."
        )
    return seconds


class Deadline:
    """The moment by which a phase must make progress; a new one is made after each step of progress. `use`: what the
    worker does with a part of its model meanwhile, which may have a limit of its own; `start_s`: at least so long for
    the start."""

    def __init__(self, phase: PhaseName, use: PartUse = "read", start_s: float = 0.0) -> None:
        self.limit_s = TEXT_LIMIT_S.get(use) or deadline_override_s() or DEADLINE_S[phase]
        if phase == "start":
            self.limit_s = max(self.limit_s, start_s)
        self._at_s = time.monotonic() + self.limit_s

    @property
    def left_s(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self._at_s - time.monotonic())
