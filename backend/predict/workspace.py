"""Temporary tensors at the two memory peaks of a run: prefill, and the last decode step.

Derived from the modeling code of transformers 5.22, by counting the tensors that are alive at once; tests run that
code on meta tensors and compare. `rows` is the number of tokens processed at once: batch x prompt length in prefill,
batch in a decode step.
"""

from dataclasses import dataclass
from typing import NamedTuple

from tokendyno.backend.models import ModelFacts

INDEX_BYTES = 8  # token ids, positions and expert indices are int64


class _LiveTensors(NamedTuple):
    """Tensors of one architecture that are alive at the peak of a layer's feed-forward.

    streams  of the hidden size: embeddings, the layer's input, the residual, its normalized copy
    inner    of the feed-forward's width: gate, up, their product
    qk_norm  queries and keys are normalized over all heads together, with float32 copies
    joined   gate and up are one tensor; several GPUs gather it, next to two copies of their own shard
    """

    streams: int = 4
    inner: int = 3
    qk_norm: bool = False
    joined: bool = False


LIVE_TENSORS = {
    "gpt2": _LiveTensors(6, 4),  # two embeddings; its GELU is written out: power, product, sum
    "bert": _LiveTensors(3, 2),
    **dict.fromkeys(("olmo2", "olmo3"), _LiveTensors(3, 3, qk_norm=True)),  # no norm before a block
    "phi3": _LiveTensors(4, 4, joined=True),  # gate and up are one tensor that stays alive
}


@dataclass(frozen=True, slots=True)
class Work:
    """Size of one forward pass, and the implementations that it uses.

    length        tokens that are attended to: the prompt, or the cache; of a prompt in chunks, those of the chunk
    attended      keys that a chunk attends to, itself included; 0: as many as `length`
    grown         bytes of a layer's keys from which a growing cache makes longer ones, with a chunk's behind them
    copied        a chunk's attention copies keys and values for each query head
    masked        a mask is built, and keys and values are repeated per query head: padding, windows, static caches
    expert_ranks  GPUs that split the experts; tokens are assumed to be routed to them evenly
    float16       the compute dtype, whose softmax into float32 a GPU does in one kernel
    """

    batch: int
    length: int
    size: int
    attention: str
    experts: str = "grouped_mm"
    masked: bool = False
    tensor_ranks: int = 1
    expert_ranks: int = 1
    cpu: bool = False
    attended: int = 0
    grown: int = 0
    copied: bool = True
    float16: bool = False

    @property
    def keys(self) -> int:
        return self.attended or self.length


def prefill_bytes(facts: ModelFacts, work: Work) -> int:
    """Peak bytes of temporary tensors in prefill, or in one chunk of it, at the last layer."""
    rows = work.batch * work.length
    live = LIVE_TENSORS.get(facts.architecture, _LiveTensors())
    eager, fixed = work.attention == "eager", _ids(facts, work) + _masks(facts, work)
    by_hand = eager or _in_plain_products(facts, work)
    scores = work.batch * facts.heads * work.length * work.keys if by_hand else 0
    queries, keys = facts.heads * facts.head_dim, facts.kv_heads * facts.head_dim
    repeated = 2 * queries if facts.heads != facts.kv_heads and (eager or work.masked) and work.copied else 0
    streams, each = (live.streams - 1) * facts.hidden, _score_bytes(facts, work)
    moments = [
        rows * live.streams * facts.hidden * work.size + _feed_forward(facts, work, rows) + eager * scores * work.size,
        # the product of scores and values, when a GPU has freed a float32 copy; and the softmax, which has both copies
        (rows * (streams + 2 * queries) + work.batch * work.keys * repeated + _bias(work)) * work.size
        + scores * (each if work.cpu else min(each, 2 * work.size + 4)),
        (rows * (streams + queries) + work.batch * work.keys * repeated) * work.size + scores * each,
        rows * (streams + 4 * queries + 2 * keys) * work.size,  # rotary embedding of the queries
        rows * (streams + queries + 2 * keys) * work.size + work.grown,
        logits_bytes(facts, work.batch, work.size + 4),
    ]
    if facts.architecture not in ("gpt2", "bert"):  # a norm in float32: the peak where the feed-forward is split
        moments.append(rows * facts.hidden * (3 * work.size + 2 * 4))
    if facts.source.forward:  # all positions have their logits, not the last one alone
        moments.append(logits_bytes(facts, rows, work.size) + rows * facts.hidden * work.size)
    if live.qk_norm:
        moments.append(rows * (streams + max(7 * queries, 5 * queries + 4 * keys)) * work.size)
    return max(fixed + max(moments), _counted(facts, work))


def _counted(facts: ModelFacts, work: Work) -> int:
    """What the architecture's own code took for so many tokens, where that was counted, on a CPU and with the attention
    that it takes by itself; 0 otherwise. What is written out above knows no more than what Llama's layers make."""
    counted, wide = dict(facts.counted_workspace), 1
    factors = counted.get("float32" if work.size == 4 else "bfloat16", ())
    if not factors and work.size == 4:
        factors, wide = counted.get("bfloat16", ()), 2
    usual = "eager" if facts.lacks_sdpa else "sdpa"
    if not factors or work.attention != usual or not (work.cpu or usual == "eager"):
        return 0
    if work.attended or work.tensor_ranks > 1 or work.expert_ranks > 1:
        return 0
    by_tokens, by_rows, squares, row_squares = factors
    per_token = by_tokens + by_rows * work.batch + (squares + row_squares * work.batch) * work.length
    return int(wide * per_token * work.length)


def decode_bytes(facts: ModelFacts, work: Work, kv_layer_bytes: int, grows: bool) -> int:
    """Peak bytes of temporary tensors in the decode step that attends to `work.length` tokens.

    A growing cache allocates the longer tensor before it frees the shorter one: half of a layer's bytes
    (`kv_layer_bytes`), or all of them in a sliding-window layer. The previous step's float32 logits are still alive.
    """
    eager = work.attention == "eager"
    repeated = facts.heads != facts.kv_heads and (eager or work.masked)
    copies = 2 * work.batch * facts.heads * facts.head_dim * work.length * work.size if repeated else 0
    scores = work.batch * facts.heads * work.length * _score_bytes(facts, work) if eager else 0
    grown = grows * (kv_layer_bytes if facts.sliding_layers else kv_layer_bytes // 2)
    feed_forward = _feed_forward(facts, work, work.batch)
    fixed = 2 * work.batch * work.length * INDEX_BYTES + logits_bytes(facts, work.batch, 4)
    return fixed + max(copies + scores, grown, feed_forward, logits_bytes(facts, work.batch, work.size + 4))


def logits_bytes(facts: ModelFacts, batch: int, size: int) -> int:
    """Logits of the last position at `size` bytes each (4 more include the float32 copy). An encoder has none."""
    return batch * facts.vocab * size if facts.kind == "decoder" else 0


def _ids(facts: ModelFacts, work: Work) -> int:
    """Token ids, mask and positions; rotary cosines and sines for each layer type."""
    kinds = len(set(facts.layer_kinds))
    positions = work.keys * 2 + work.length if work.attended else 3 * work.length
    return positions * work.batch * INDEX_BYTES + work.length * 2 * kinds * facts.head_dim * work.size


def _masks(facts: ModelFacts, work: Work) -> int:
    """One mask per layer type: floats for eager attention, else booleans, and only where one is needed."""
    kinds, squares = len(set(facts.layer_kinds)), work.batch * work.length * work.keys
    if work.attention == "eager":
        return kinds * (squares if work.masked else work.length * work.keys) * work.size
    return kinds * squares * work.masked


def _bias(work: Work) -> int:
    """Numbers that sdpa makes of a chunk's boolean mask, to add them to the scores
    (aten/src/ATen/native/transformers/attention.cpp, `convert_boolean_attn_mask`)."""
    added = work.masked and "sdpa" in work.attention and (work.copied or work.cpu)
    return work.batch * work.length * work.attended if added else 0


def _score_bytes(facts: ModelFacts, work: Work) -> int:
    """Bytes per pair of query and key at the peak of eager attention. Scores are converted to float32 before the
    softmax; a GPU does so within it, from float16 alone (aten/src/ATen/native/SoftMax.cpp, `softmax`)."""
    size = work.size
    if work.attention != "eager":
        return 3 * size  # scores, masked, and after the softmax
    if facts.architecture == "bloom":
        return 4 * size  # with position biases, masked, after the softmax, and after the dropout
    if facts.sinks:
        return 3 * size  # scores masked, shifted, and after the softmax
    if facts.architecture in ("gpt2", "bert"):
        return 2 * size  # softmax in the compute dtype
    if size == 4:
        return 2 * size
    if work.float16 and not work.cpu:
        return 2 * size + 4  # masked scores, the float32 softmax, and its copy
    return size + 2 * 4  # masked scores, their float32 copy, and its softmax


def _in_plain_products(facts: ModelFacts, work: Work) -> bool:
    """Whether a CPU's sdpa falls back to products of its own: where keys and values have other sizes, and where one KV
    head is left to be broadcast (aten/src/ATen/native/transformers/sdp_utils_cpp.cpp)."""
    uneven = any(not layers.even for layers in facts.counted_cache)
    broadcast = facts.architecture == "falcon" and facts.kv_heads == 1
    return work.cpu and work.attention == "sdpa" and (uneven or broadcast)


def _feed_forward(facts: ModelFacts, work: Work, rows: int) -> int:
    """Intermediate tensors of the feed-forward, or of the experts in use."""
    if not facts.experts:
        live = LIVE_TENSORS.get(facts.architecture, _LiveTensors())
        gathered = 2 * facts.intermediate // work.tensor_ranks if live.joined and work.tensor_ranks > 1 else 0
        return rows * (live.inner * facts.intermediate + gathered) * work.size
    ranks = 1 if work.experts == "triton" else work.expert_ranks  # our kernels have room for all pairs on each
    pairs, width = -(-rows * facts.experts_per_token // ranks), facts.intermediate
    if ranks > 1:  # tokens received from other ranks, and results sent back
        return 2 * pairs * facts.hidden * work.size + _experts(facts, work, rows, pairs, width)
    return _experts(facts, work, rows, pairs, width)


def _experts(facts: ModelFacts, work: Work, rows: int, pairs: int, width: int) -> int:
    """Intermediate tensors of the experts, for `pairs` of token and expert."""
    # gpt-oss has biases, clamped halves and gate times sigmoid; others have gate and up and two products
    inner = 9 if facts.sinks else 4
    match work.experts:
        case "batched_mm":  # the expert's weights are copied for each pair
            return pairs * (3 * facts.hidden * width + facts.hidden + width) * work.size
        case "eager":  # one expert at a time, with an even share of the tokens; a one-hot routing table
            tokens = -(-pairs // facts.experts)
            return (
                rows * facts.hidden * work.size
                + tokens * (facts.hidden + inner * width) * work.size
                + (rows * facts.experts_per_token * facts.experts * INDEX_BYTES)
            )
        case "triton":  # activations; results of each pair in float32, and their sum
            return pairs * (width * work.size + facts.hidden * 4) + rows * facts.hidden * work.size
        case _:  # tokens sorted by expert; then weighted results in the original order
            return pairs * max(facts.hidden + inner * width, 4 * facts.hidden) * work.size
