"""What a run needs at its peak: an estimate, meant to refuse what cannot fit."""

from dataclasses import dataclass

from backend.models import ModelFacts
from backend.plan import CacheKind
from backend.predict.kv import kv_bytes
from backend.predict.weights import itemsize, weight_bytes

RUNTIME_BYTES = {"cpu": 420 << 20, "cuda": 1000 << 20}
"""Before any model. CPU: 373 MB resident were measured after importing torch 2.13 and transformers 5.22 and
generating with a model of 10,000 parameters, on two cores; the rest is room for thread pools and the allocator.
CUDA: NVML's peak of the process minus the allocator's was 843 to 1,199 MiB on one H200 (MEASUREMENTS.md).
"""

FEED_FORWARD_WIDTHS = 6
"""Copies of the feed-forward's width that live at once: gate, up, product and the activation's temporaries.

With it, eight runs on a CPU (pocket to Gemma 3 1B, prompts of 500 to 3,000 tokens, sdpa and eager) peaked between
2% above and 9% below the estimate, one (gpt-oss, 3,000 tokens, eager) 26% below.
"""


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes on the device; `total` is the sum of the first three and `runtime_bytes`.

    weights        exact for known architectures
    kv             the cache at its largest
    workspace      largest of what prefill and logits need beside them, roughly
    runtime_bytes  what a worker takes before any model is there: interpreter and libraries, or CUDA context
    """

    weights: int
    kv: int
    workspace: int
    runtime_bytes: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.kv + self.workspace + self.runtime_bytes


def peak_bytes(
    facts: ModelFacts,
    dtype: str = "auto",
    cache: CacheKind = "dynamic",
    prompt_length: int = 1,
    new_tokens: int = 1,
    batch: int = 1,
    device: str = "cpu",
    *,
    attention: str | None = None,
    max_cache_len: int | None = None,
    packed: bool = False,
) -> MemoryEstimate:
    """The peak of making `new_tokens` after a prompt of `prompt_length`, in each of `batch` sequences.

    After a prefill longer than the window a dynamic cache holds the whole prompt in every layer until the
    first decoded token (its tensors are views), so the larger of that and the end counts.
    """
    size = itemsize(facts, dtype)
    last = prompt_length + new_tokens - 1  # the newest token is never cached
    places = max_cache_len if max_cache_len is not None else last
    at_end = kv_bytes(facts, cache, min(last, places) if cache == "static" else last, batch, size, places).total
    if cache == "dynamic":
        at_end = max(at_end, kv_bytes(facts, "unwindowed", prompt_length, batch, size).total)
    return MemoryEstimate(
        weights=weight_bytes(facts, dtype, packed=packed),
        kv=at_end,
        workspace=_workspace_bytes(facts, attention, batch, prompt_length, at_end, size),
        runtime_bytes=RUNTIME_BYTES["cuda" if device.startswith("cuda") else "cpu"],
    )


def _workspace_bytes(facts: ModelFacts, attention: str | None, batch: int, prompt: int, kv: int, size: int) -> int:
    """One layer's prefill in the compute dtype, and the logits of each last position, also in float32.

    One layer: residual, its normed copy and queries, keys, values; then the larger of the feed-forward (of the
    experts at work) and, with eager attention, the scores: twice in the compute dtype, twice in float32.
    Growing a dynamic cache copies one layer of it.
    """
    tokens = batch * prompt
    stream = tokens * (3 * facts.hidden + (2 * facts.heads + 2 * facts.kv_heads) * facts.head_dim) * size
    feed_forward = tokens * FEED_FORWARD_WIDTHS * facts.intermediate * max(1, facts.experts_per_token) * size
    eager = attention == "eager" or facts.sinks  # sdpa cannot do sinks: transformers falls back to eager
    scores = batch * facts.heads * prompt * prompt * (2 * size + 8) if eager else 0
    logits = batch * facts.vocab * (4 + size) if facts.kind == "decoder" else 0
    return stream + max(feed_forward, scores) + logits + kv // facts.layers
