"""Memory as a witness: what the ledger claims must show in the bytes that were measured."""

from tokendyno.backend.optimizations.base import Witness

TOLERANCE: dict[Witness, float] = {"weights": 0.02, "kv": 0.02}
"""Largest share by which measured bytes may differ from the prediction. Both are counted from tensors, so the two agree
to the byte where the arm is what it claims; the rest is for packed formats that pad their rows."""

_NAMES: dict[Witness, str] = {"weights": "the weights take", "kv": "the KV cache takes"}


def doubt(witness: Witness, predicted: int | None, measured: int | None) -> str:
    """What the memory says against an axis that decides these bytes; "" within the tolerance, or if unknown."""
    if not predicted or measured is None:
        return ""
    error = (measured - predicted) / predicted
    if abs(error) <= TOLERANCE[witness]:
        return ""
    return (
        f"The memory contradicts this: {_NAMES[witness]} {measured:,} bytes, {error:+.1%} against the {predicted:,} "
        f"predicted for this choice (tolerance {TOLERANCE[witness]:.0%})."
    )
