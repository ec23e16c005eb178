"""The roofline bound of a step, and of a prefill: bytes to read over bandwidth, or operations over peak FLOP/s,
whichever is longer.

A lower bound on latency for any implementation, not an estimate of one: every weight that the step needs and every key
and value that it may attend to is read from memory once, and nothing else is. (Williams, Waterman, Patterson: Roofline,
CACM 52(4).) Only data that stays in an on-chip cache can be read faster, so a model of a few megabytes may beat its
bound. Where several ranks share the model, the bound is that of one rank, and the bytes that they must exchange take
their time over the link besides: a product that needs the sum of all parts cannot read its weights before it, unless
they wait in an on-chip cache. How long an exchange takes to begin is not counted.
"""

from dataclasses import dataclass
from typing import Literal

from tokendyno.backend.hardware.peak_rates import PeakRates
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.models.families import FAMILIES
from tokendyno.backend.plan import DYNAMIC
from tokendyno.backend.predict.kv import kv_bytes
from tokendyno.backend.predict.parallel import exchanges, plan_of, shard
from tokendyno.backend.predict.setup import Setup
from tokendyno.backend.predict.weights import itemsize, quantization_on, weight_bytes_read
from tokendyno.backend.units import bytes_text, seconds_text

POINTS = 17
"""Cache lengths at which the bound's curve is sampled, corners not counted."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What one step of the whole batch must read and compute, and the least time for it.

    flops       floating-point operations, a multiply-add counted as two
    seconds     the larger of the memory time and the compute time, and the time of the exchanges
    exchanged_bytes, exchange_s  what a rank must receive from the others, and the least time for it; None where the
                link's bandwidth is unknown
    """

    weight_bytes: int
    kv_bytes: int
    flops: int
    seconds: float
    limited_by: Literal["memory", "compute"]
    exchanged_bytes: int
    exchange_s: float | None

    @property
    def bytes(self) -> int:
        """Bytes to read: weights and KV cache."""
        return self.weight_bytes + self.kv_bytes


def bound(facts: ModelFacts, setup: Setup, length: int, batch: int, rates: PeakRates) -> Bound:
    """The bound of the decode step that attends to `length` tokens in each of `batch` sequences.

    For an encoder: of one forward pass over `length` tokens. Without a known FLOP/s rate only memory counts.
    """
    if length < 1 or batch < 1:
        raise ValueError("a step needs at least one token of one sequence")
    encoder = facts.kind == "encoder"
    rows = batch * length if encoder else batch
    weights, kv = bytes_read(facts, setup, length, batch)
    flops = _flops(shard(facts, setup.tensor_parallel, setup.expert_parallel), length, rows)
    memory_s = (weights + kv) / rates.bandwidth_bytes_per_s
    compute_s = flops / rates.flops_per_s if rates.flops_per_s else 0.0
    exchanged = exchanged_bytes(facts, setup.tensor_parallel, rows, itemsize(facts, setup.dtype))
    link = rates.link_bytes_per_s
    exchange_s = (exchanged / link if link else None) if exchanged else 0.0
    seconds = max(memory_s, compute_s) + (exchange_s or 0.0)
    return Bound(weights, kv, flops, seconds, "compute" if compute_s > memory_s else "memory", exchanged, exchange_s)


def bytes_read(facts: ModelFacts, setup: Setup, length: int, batch: int) -> tuple[int, int]:
    """Bytes of weights and of the KV cache that the step of `bound` must read."""
    rank = shard(facts, setup.tensor_parallel, setup.expert_parallel)
    rows = batch * length if facts.kind == "encoder" else 1 if setup.alike else batch
    weights = weight_bytes_read(rank, setup.dtype, quantization_on(facts, setup), rows)
    cache = setup.cache if setup.cache.quantized else DYNAMIC  # of a sliding window no more than it
    return weights, kv_bytes(rank, cache, length, batch, itemsize(facts, setup.dtype), max_cache_len=length).total


def bound_points(
    facts: ModelFacts, setup: Setup, first: int, last: int, batch: int, rates: PeakRates
) -> list[tuple[int, float]]:
    """(cache length, seconds) from `first` to `last`, corners included: the bound as an arm's cache grows."""
    spread = {first + round(i * (last - first) / (POINTS - 1)) for i in range(POINTS)}
    corners = {facts.window - 1, facts.window} if facts.window else set()
    lengths = sorted(spread | {length for length in corners if length in range(first, last)})
    return [(length, bound(facts, setup, length, batch, rates).seconds) for length in lengths]


def _elements(facts: ModelFacts) -> tuple[int, int]:
    """Elements of the matrices that act on each token, and of those that act on the last one alone: the output head."""
    each = head = 0
    for index, matrix in enumerate(facts.matrices):
        if matrix.use == "never":
            continue
        if matrix.kind == "expert" or matrix.use == "routed":
            each += matrix.elements * facts.experts_per_token // max(1, facts.experts)
        elif matrix.kind == "head" or (
            matrix.kind == "embedding" and index == 0 and facts.tied and facts.kind == "decoder"
        ):
            head += matrix.elements
        elif matrix.kind != "embedding":
            each += matrix.elements
    return each, head


def _flops(facts: ModelFacts, length: int, rows: int) -> int:
    """Two operations for each element of the matrices that act on a token and of the keys and values it attends to."""
    attended = facts.full_layers * length + facts.sliding_layers * min(length, facts.window or length)
    return 2 * rows * (sum(_elements(facts)) + 2 * attended * facts.heads * facts.head_dim)


def prefill_bound(facts: ModelFacts, setup: Setup, length: int, batch: int, rates: PeakRates) -> Bound | None:
    """The bound of reading `length` tokens in each of `batch` sequences, up to the first new token: a token attends to
    itself and those before it, and each weight is read once, however many passes an arm takes.

    None where it is not known: without a rate of operations, since a prefill is rarely bound by memory; with packed
    weights, whose products may run in another format than activations have; on several devices; for an encoder.
    """
    several = setup.tensor_parallel > 1 or setup.devices > 1
    if not rates.flops_per_s or several or facts.kind == "encoder" or quantization_on(facts, setup) != "none":
        return None
    if facts.quantization is not None or not set(facts.layer_kinds) <= {"full", "sliding"}:
        return None
    weights = weight_bytes_read(facts, setup.dtype, "none", length if setup.alike else batch * length)
    each, head = _elements(facts)
    window = min(length, facts.window or length)
    pairs = facts.full_layers * _pairs(length, length) + facts.sliding_layers * _pairs(length, window)
    flops = 2 * batch * (length * each + head + 2 * pairs * facts.heads * facts.head_dim)
    memory_s, compute_s = weights / rates.bandwidth_bytes_per_s, flops / rates.flops_per_s
    return Bound(weights, 0, flops, max(memory_s, compute_s), "compute" if compute_s > memory_s else "memory", 0, 0.0)


def _pairs(length: int, window: int) -> int:
    """Pairs of a token and one that it attends to: itself and those before it, `window` in all."""
    return window * (window + 1) // 2 + (length - window) * window


UNKNOWN = "memory bandwidth not measured yet"
"""Why there is no bound, in a few words for a label."""


def basis(step: Bound, rates: PeakRates) -> str:
    """The rate behind a bound and its source, e.g. "4,800 GB/s, data sheet of H200-SXM"."""
    if step.limited_by == "compute" and rates.flops_per_s:
        return f"{rates.flops_per_s / 1e12:,.4g} Tflop/s, {rates.source}"
    return f"{rates.bandwidth_bytes_per_s / 1e9:,.4g} GB/s, {rates.source}"


def work(step: Bound, rates: PeakRates) -> str:
    """What a step must do at that rate, e.g. "16.1 GB to read", and what ranks must exchange."""
    tflop = f"{step.flops / 1e12:,.3g} Tflop"
    least = tflop if step.limited_by == "compute" else f"{_decimal(step.bytes)} to read"
    return f"{least} on each rank, {exchange(step, rates)}" if step.exchanged_bytes else least


def _decimal(size: float) -> str:
    """Bytes in the decimal units of memory bandwidth."""
    return f"{size / 1e9:,.3g} GB" if size >= 1e9 else f"{size / 1e6:,.3g} MB"


def exchange(step: Bound, rates: PeakRates) -> str:
    """What a rank must receive from the others in a step, and how long that takes over their link."""
    size = " ".join(bytes_text(step.exchanged_bytes))
    if not rates.link_bytes_per_s:
        return f"{size} exchanged between the ranks, not counted: the bandwidth of their link is unknown"
    took = " ".join(seconds_text(step.exchanged_bytes / rates.link_bytes_per_s))
    return f"{size} exchanged between the ranks in {took} ({rates.link_bytes_per_s / 1e9:,.4g} GB/s, {rates.link})"


def exchanged_bytes(facts: ModelFacts, tensor: int, rows: int, size: int) -> int:
    """Bytes that each rank must at least receive from the others in a pass over `rows` tokens, each with its logits;
    `size`: bytes of a number.

    Of n ranks each receives 2 (n - 1) / n of what is added up and (n - 1) / n of what is put together, whatever the
    algorithm (Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms, JPDC 69(2)).
    """
    if tensor == 1:
        return 0
    together = facts.vocab
    if plan_of(facts) == "gathered":
        joined = 2 * facts.intermediate if FAMILIES[facts.architecture].joined else 0
        together += facts.layers * ((facts.heads + 2 * facts.kv_heads) * facts.head_dim + joined)
    added = exchanges(facts, tensor).all_reduce * facts.hidden
    return round((2 * added + together) * rows * size * (tensor - 1) / tensor)
