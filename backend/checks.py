"""Predicted against measured bytes of one arm, with the error in percent."""

from collections.abc import Mapping
from typing import NamedTuple

from backend.view import Tile, bytes_text

OF_PROCESS = "of the worker"
"""Stands in the label of a memory series that counts the worker's process alone: only that can be compared."""


class Check(NamedTuple):
    """One part of the memory; None is what was not predicted or not measured."""

    part: str
    label: str
    predicted: int | None
    measured: int | None

    @property
    def error_percent(self) -> float | None:
        """How much more was measured than predicted, of what was predicted."""
        if not self.predicted or self.measured is None:
            return None
        return 100 * (self.measured - self.predicted) / self.predicted

    def as_json(self) -> dict[str, float | None]:
        """For programs."""
        return {"predicted": self.predicted, "measured": self.measured, "error": self.error_percent}

    def tile(self) -> Tile:
        """For people."""
        value, unit = bytes_text(self.measured) if self.measured is not None else ("n/a", "")
        note = ""
        if self.predicted is not None:
            error = self.error_percent
            note = f"predicted {' '.join(bytes_text(self.predicted))}" + (
                f", {error:+.2f}%" if error is not None else ""
            )
        return Tile(f"check_{self.part}", self.label, value, unit, note)


def checks(
    foreseen: Mapping[str, int], weights: int | None, kv: tuple[int | None, int | None], peak: int, label: str,
    extra: Mapping[str, float],
) -> list[Check]:  # fmt: skip
    """Every part. `foreseen`: of the run as it was; `kv`: (predicted, measured) at its end; `label`: of `peak`."""
    found = [
        Check("weights", "Weights", foreseen.get("weights"), weights),
        Check("kv", "KV cache at the end", *kv),
        Check("peak", "Peak of the process", foreseen.get("total"), peak if peak and OF_PROCESS in label else None),
    ]
    if "allocator_peak_bytes" in extra:
        allocator = int(extra["allocator_peak_bytes"])
        found.append(Check("allocator", "Peak of the tensors", foreseen.get("tensors"), allocator))
    return found
