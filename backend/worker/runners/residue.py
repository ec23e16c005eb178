"""What runs leave in their process, beyond what it held before the first of them."""

import weakref
from collections.abc import Callable
from typing import Any

import torch

from tokendyno.backend.counts import Residue
from tokendyno.backend.worker.measure.memory import MemoryMeter
from tokendyno.backend.worker.prove.tensor_bytes import bytes_by_device, bytes_on, cache_tensors
from tokendyno.backend.worker.runners.generation import Measured


class ResidueMeter:
    """Compares the memory of a process with what it held before its first measured run.

    own_process  no other work runs in it: else nobody can tell what a run left
    level_first  before the next measured run, memory has to be given back and used anew
    """

    def __init__(self, memory: MemoryMeter, own_process: bool) -> None:
        self._memory = memory
        self.own_process = self.level_first = own_process
        self._clean_bytes: int | None = None  # bytes before the first measured run, without caches

    @property
    def wants_clean(self) -> bool:
        return self.level_first and self._clean_bytes is None

    def note_clean(self, cache: Any) -> None:
        """The process has run nothing yet, or what it ran was given back; it holds that empty cache."""
        self._clean_bytes = self._memory.settled() - self.cache_bytes(cache)

    def settled(self) -> int | None:
        """Bytes of the process now; None where nobody can tell what a run left."""
        return self._memory.settled() if self.own_process and self._clean_bytes is not None else None

    def left_bytes(self, cache: Callable[[], Any]) -> int | None:
        """What was left so far, without that cache, which the next run uses too; None where nobody can tell."""
        self.level_first = self.own_process
        if not self.own_process or self._clean_bytes is None:
            return None
        return self._memory.settled() - self.cache_bytes(cache()) - self._clean_bytes

    def note_left(self, run: Measured, before_proof: int | None) -> None:
        """Count what a run left, and its proof. The run lets go of its cache."""
        proof_left = None if before_proof is None else self._memory.settled() - before_proof
        cache = weakref.ref(run.cache) if run.cache is not None else lambda: None
        run.cache = None
        run.meter.release()
        left_bytes = self.left_bytes(cache)
        if left_bytes is not None:
            clean_bytes = None if self._memory.device == "cuda" else self._clean_bytes
            run.counts.residue = Residue(left_bytes=left_bytes, proof_left_bytes=proof_left, clean_bytes=clean_bytes)

    def cache_bytes(self, cache: Any) -> int:
        """Bytes of a cache on the device whose memory is measured."""
        if cache is None:
            return 0
        if self._memory.device == "cuda":
            return bytes_on(cache_tensors(cache), torch.cuda.current_device())
        return bytes_by_device(cache)["cpu"]
