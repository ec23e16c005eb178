"""Predicted against measured bytes of one arm, with the error in percent."""

from collections.abc import Mapping
from typing import NamedTuple

from tokendyno.backend.counts import Memory
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.units import bytes_text
from tokendyno.backend.views.tile import Tile

OF_PROCESS = "of the worker"
"""Part of the label of a memory series that counts only the worker's process: no other can be compared."""


KEPT_SHARE = 0.02
"""Of a peak: from here on, what a GPU's allocator kept reserved beside tensors is told."""


class MemoryCheck(NamedTuple):
    """One part of the memory; None is what was not predicted or not measured.

    remark  what an error may come of, beside the prediction
    margin  bytes by which the prediction may be off, 0 where none is stated
    """

    part: str
    label: str
    predicted: int | None
    measured: int | None
    remark: str = ""
    margin: int = 0

    @property
    def margin_percent(self) -> float:
        """The margin in percent of the prediction, to a tenth: bytes are whole."""
        return round(100 * self.margin / self.predicted, 1) if self.predicted else 0.0

    @property
    def error_percent(self) -> float | None:
        """(measured - predicted) / predicted, in percent."""
        if not self.predicted or self.measured is None:
            return None
        return 100 * (self.measured - self.predicted) / self.predicted

    def tile(self) -> Tile:
        """The measured bytes, with the prediction and its error as the note."""
        value, unit = bytes_text(self.measured) if self.measured is not None else ("n/a", "")
        note, error = "", self.error_percent
        if self.predicted is not None:
            note = f"predicted {' '.join(bytes_text(self.predicted))}"
            note += f" \u00b1 {self.margin_percent:.0f}%" if self.margin else ""
            note += f", {error:+.2f}%" if error is not None else ""
            note += f"; {self.remark}" if self.remark and error is not None else ""
        return Tile(f"check_{self.part}", self.label, value, unit, note)


def memory_checks_of(run: Snapshot, name: str) -> list[MemoryCheck]:
    """Every part of one arm's memory."""
    arm, summary = run.arms[name], run.summary(name)
    counts = arm.finished.counts.memory if arm.finished else Memory()
    weights = arm.loaded.weight_bytes if arm.loaded else None
    kv = (summary.kv_predicted_bytes, summary.kv_bytes)
    return memory_checks(arm.predicted_memory, weights, kv, summary.peak_memory_bytes or 0, run.memory_label, counts)


def memory_checks(
    predicted: Mapping[str, int],
    weights: int | None,
    kv: tuple[int | None, int | None],
    peak: int,
    label: str,
    counts: Memory,
) -> list[MemoryCheck]:
    """Every part. `kv`: (predicted, measured) at the end of the run; `label`: what `peak` counts.

    On a GPU the process also holds what torch's allocator has reserved and no tensor used: it is not predicted, but
    told. On a CPU nobody can ask the C library for that, and the prediction has a margin.
    """
    found = [
        MemoryCheck("weights", "Weights", predicted.get("weights"), weights),
        MemoryCheck("kv", "KV cache at the end", *kv),
        MemoryCheck(
            "peak",
            "Peak process memory",
            predicted.get("total"),
            peak if peak and OF_PROCESS in label else None,
            _remark(peak, counts),
            predicted.get("margin", 0),
        ),
    ]
    if counts.allocator_peak_bytes is not None:
        allocator = counts.allocator_peak_bytes
        found.append(MemoryCheck("allocator", "Peak tensor memory", predicted.get("tensors"), allocator))
    return found


def _remark(peak: int, counts: Memory) -> str:
    if counts.allocator_peak_bytes is None or counts.allocator_reserved_bytes is None:
        return ""
    kept = counts.allocator_reserved_bytes - counts.allocator_peak_bytes
    if kept <= KEPT_SHARE * peak:
        return ""
    return f"torch's allocator kept {' '.join(bytes_text(kept))} that no tensor used"
