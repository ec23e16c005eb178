"""The least time a token can take: bytes that must be read over the bandwidth, or operations over the peak rate.

A bound for any implementation, not an estimate of one: every weight that the token needs is read once from memory,
every key and value it may attend to once, and nothing else. (Williams, Waterman, Patterson: Roofline, CACM 52(4).)
Only what fits into a cache of the chip could be read faster: a model of a few megabytes can beat its floor.
Where several GPUs share the model, it is what one of them must read and compute; what they send each other, an
all-reduce after each block at least, is not counted.
"""

from dataclasses import dataclass
from typing import Literal

from backend.models import ModelFacts
from backend.plan import CacheKind
from backend.predict.kv import kv_bytes
from backend.predict.memory import Setup
from backend.predict.parallel import share
from backend.predict.weights import itemsize, touched_bytes

POINTS = 17
"""Lengths at which a floor's curve is worked out, between its corners: it is straight but where the bound changes."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the hardware can do.

    bandwidth_bytes_per_s  reading memory
    flops_per_s            operations in the dtype that is computed in, None where it is not known
    source                 in words: measured here, or the catalogue's
    """

    bandwidth_bytes_per_s: float
    flops_per_s: float | None
    source: str


@dataclass(frozen=True, slots=True)
class Floor:
    """One step of a whole batch: what it must read and compute, and the least seconds for that."""

    weight_bytes: int
    kv_bytes: int
    flops: int
    seconds: float
    bound: Literal["memory", "compute"]

    @property
    def bytes(self) -> int:
        """All that must be read."""
        return self.weight_bytes + self.kv_bytes


def floor(facts: ModelFacts, setup: Setup, length: int, batch: int, limits: Limits) -> Floor:
    """The floor of the token that attends to `length` tokens, in each of `batch` sequences; of an encoder, of a pass
    over `length` tokens."""
    if length < 1 or batch < 1:
        raise ValueError("a step sees at least one token of one sequence")
    encoder = facts.kind == "encoder"
    rows = batch * length if encoder else batch
    mine = share(facts, setup.tensor_parallel, setup.expert_parallel)
    weights = touched_bytes(mine, setup.dtype, setup.quantization, rows)
    kv = 0 if encoder else needed_kv_bytes(facts, setup, length, batch)
    flops = _flops(mine, length, rows)
    memory_s = (weights + kv) / limits.bandwidth_bytes_per_s
    compute_s = flops / limits.flops_per_s if limits.flops_per_s else 0.0
    return Floor(weights, kv, flops, max(memory_s, compute_s), "compute" if compute_s > memory_s else "memory")


def needed_kv_bytes(facts: ModelFacts, setup: Setup, length: int, batch: int) -> int:
    """Keys and values that a token at this length may attend to: of a window its tokens, whatever the cache keeps or
    has allocated beyond; packed ones as they are packed."""
    packed: CacheKind = setup.cache if setup.cache.startswith("quantized") else "dynamic"
    mine = share(facts, setup.tensor_parallel, setup.expert_parallel)
    return kv_bytes(mine, packed, length, batch, itemsize(facts, setup.dtype)).total


def floor_points(
    facts: ModelFacts, setup: Setup, first: int, last: int, batch: int, limits: Limits
) -> list[tuple[int, float]]:
    """(length, seconds) between two lengths, corners included: the floor of an arm, moving as its cache grows."""
    spread = {first + round(i * (last - first) / (POINTS - 1)) for i in range(POINTS)}
    corners = {facts.window - 1, facts.window} if facts.window else set()
    lengths = sorted(spread | {length for length in corners if first <= length <= last})
    return [(length, floor(facts, setup, length, batch, limits).seconds) for length in lengths]


def _flops(facts: ModelFacts, length: int, rows: int) -> int:
    """A multiplication and an addition for each number of the matrices that work on a token, and for each number of the
    keys and values that it sees. The head is tied to the first embedding, or a matrix of its own."""
    per_token = 0
    for index, matrix in enumerate(facts.matrices):
        match matrix.kind:
            case "expert":
                per_token += matrix.numbers * facts.experts_per_token // facts.experts
            case "embedding":
                per_token += matrix.numbers if index == 0 and facts.tied and facts.kind == "decoder" else 0
            case _:
                per_token += matrix.numbers
    seen = facts.full_layers * length + facts.sliding_layers * min(length, facts.window or length)
    return 2 * rows * (per_token + 2 * seen * facts.heads * facts.head_dim)
