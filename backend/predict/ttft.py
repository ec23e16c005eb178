"""The bound of a prefill: its operations over peak FLOP/s, or the weights over bandwidth, whichever takes longer.

Like the bound of a step (`roofline.py`), and for any implementation: a token attends to itself and those before it, the
output head acts on the last token alone, each weight is read once, however many passes an arm takes.
"""

from tokendyno.backend.hardware.peak_rates import PeakRates
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.predict.roofline import Bound
from tokendyno.backend.predict.setup import Setup
from tokendyno.backend.predict.weights import quantization_on, weight_bytes_read


def prefill_bound(facts: ModelFacts, setup: Setup, length: int, batch: int, rates: PeakRates) -> Bound | None:
    """The bound of reading `length` tokens in each of `batch` sequences, up to the first new token.

    None where it is not known: without a rate of operations, since a prefill is rarely bound by memory; with packed
    weights, whose products may run in another format than activations have; on several devices; for an encoder.
    """
    several = setup.tensor_parallel > 1 or setup.devices > 1
    if not rates.flops_per_s or several or facts.kind == "encoder" or quantization_on(facts, setup) != "none":
        return None
    if facts.quantization is not None or not set(facts.layer_kinds) <= {"full", "sliding"}:
        return None
    weights = weight_bytes_read(facts, setup.dtype, "none", batch * length)
    flops = _flops(facts, length, batch)
    memory_s, compute_s = weights / rates.bandwidth_bytes_per_s, flops / rates.flops_per_s
    limit = "compute" if compute_s > memory_s else "memory"
    return Bound(weights, 0, flops, max(memory_s, compute_s), limit, 0, 0.0)  # type: ignore[arg-type]


def _flops(facts: ModelFacts, length: int, batch: int) -> int:
    """Two operations for each element of the matrices, and two products for each pair of tokens that attend."""
    each = head = 0
    for index, matrix in enumerate(facts.matrices):
        if matrix.use == "never":
            continue
        if matrix.kind == "head" or (matrix.kind == "embedding" and index == 0 and facts.tied):
            head += matrix.elements
        elif matrix.kind == "expert" or matrix.use == "routed":
            each += matrix.elements * facts.experts_per_token // max(1, facts.experts)
        elif matrix.kind != "embedding":
            each += matrix.elements
    window = min(length, facts.window or length)
    pairs = facts.full_layers * _pairs(length, length) + facts.sliding_layers * _pairs(length, window)
    return 2 * batch * (length * each + head + 2 * pairs * facts.heads * facts.head_dim)


def _pairs(length: int, window: int) -> int:
    """Pairs of a token and one that it attends to: itself and those before it, `window` in all."""
    return window * (window + 1) // 2 + (length - window) * window
