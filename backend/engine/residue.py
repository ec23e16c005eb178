"""What the runs of one worker left in its process, and whether another run can still be measured there.

The peak of a process holds all that earlier runs did not give back: kernels that oneDNN or cuDNN built for their
lengths, graphs, what a profile allocated. And a profiler that stays attached to a GPU's driver slows each launch. A
worker is kept for the next run only where none of that would count as the run's own.
"""

import math
from dataclasses import dataclass, field

import msgspec

from tokendyno.backend.messages import Finished, Generate, Proved, Scored, encode

TOLERATED_SHARE = 0.025
"""Of the smallest peak that a run there can have: what may be left without a new worker being started. A proof left
3.4% in the smallest worker on a CPU that computes float32 (lab/measurements.md), so that it takes one run."""


@dataclass(slots=True)
class Residue:
    """The runs of one worker. Runs that are equal but for their proof leave nothing that each of them does not use.

    attached          the profiler of a proof still listens to the GPU
    peak_bytes        of the latest run; on a CPU what the process held before its first one, if that is less
    """

    runs: set[bytes] = field(default_factory=set)
    left_bytes: float = 0.0
    proof_left_bytes: float = 0.0
    attached: bool = False
    peak_bytes: float = 0.0
    running: bytes | None = None

    def begin(self, command: Generate) -> None:
        """A run begins."""
        self.running = _key(command)

    def refused(self) -> None:
        """The run was refused before anything ran."""
        self.running = None

    def note(self, event: Finished | Proved | Scored) -> None:
        """The run ended, its proof, or the reading of a text."""
        if isinstance(event, Scored):
            self.left_bytes = self.proof_left_bytes = event.left_bytes or 0.0
            return
        if isinstance(event, Finished):
            if self.running is not None:
                self.runs.add(self.running)
            self.running = None
            self.peak_bytes = float(event.peak_memory_bytes)
        residue, attached = event.counts.residue, event.counts.traced.profiler_attached
        self.peak_bytes = min(self.peak_bytes, residue.clean_bytes or math.inf)
        self.left_bytes, self.proof_left_bytes = residue.left_bytes or 0.0, residue.proof_left_bytes or 0.0
        if attached is not None:
            self.attached = bool(attached)

    def disturbs(self, command: Generate) -> str:
        """Why this run needs a new worker, in a few words; "" if it can be measured here."""
        if self.running is not None:
            return "the run before did not end"
        if self.attached:
            return "the profiler of the last proof could not be detached from the GPU, and would slow this run"
        left = self.proof_left_bytes if self.runs == {_key(command)} else self.left_bytes
        if not self._counts(left):
            return ""
        return f"earlier runs left {left / (1 << 20):,.0f} MiB in the last one, which would count as this run's"

    @property
    def spent(self) -> bool:
        """Whether any other run needs a new worker."""
        return self.running is not None or self.attached or self._counts(self.left_bytes)

    def _counts(self, left: float) -> bool:
        return left > TOLERATED_SHARE * self.peak_bytes


def _key(command: Generate) -> bytes:
    return encode(msgspec.structs.replace(command, prove=False, keep=False))
