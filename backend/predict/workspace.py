"""Temporary tensors at the two memory peaks of a run: prefill, and the last decode step.

Derived from the modeling code of transformers 5.22, by counting the tensors that are alive at once; tests run that
code on meta tensors and compare. `rows` is the number of tokens processed at once: batch x prompt length in prefill,
batch in a decode step.
"""

from typing import NamedTuple

from tokendyno.backend.models import ModelFacts
from tokendyno.backend.predict.shape import Pass, Shape

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


def prefill_bytes(read: Pass) -> int:
    """Peak bytes of temporary tensors in prefill, or in one chunk of it, at the last layer."""
    shape, facts, size, batch = read.shape, read.shape.facts, read.shape.size, read.shape.batch
    rows, cpu = batch * read.tokens, not shape.setup.cuda
    live = LIVE_TENSORS.get(facts.architecture, _LiveTensors())
    eager, fixed = shape.attention == "eager", _ids(read) + _masks(read)
    scores = batch * facts.heads * read.tokens * read.keys if eager or _writes_out_scores(shape) else 0
    queries, keys = facts.heads * facts.head_dim, facts.kv_heads * facts.head_dim
    repeated = 2 * queries if facts.heads != facts.kv_heads and (eager or read.masked) and read.copied else 0
    streams, each = (live.streams - 1) * facts.hidden, _score_bytes(shape)
    feed_forward = _feed_forward(shape, rows, shape.setup.experts or "grouped_mm")
    moments = [
        rows * live.streams * facts.hidden * size + feed_forward + eager * scores * size,
        # the product of scores and values, when a GPU has freed a float32 copy; and the softmax, which has both copies
        (rows * (streams + 2 * queries) + batch * read.keys * repeated + _bias(read)) * size
        + scores * (each if cpu else min(each, 2 * size + 4)),
        (rows * (streams + queries) + batch * read.keys * repeated) * size + scores * each,
        rows * (streams + 4 * queries + 2 * keys) * size,  # rotary embedding of the queries
        rows * (streams + queries + 2 * keys) * size + read.grown,
        logits_bytes(facts, batch, size + 4),
    ]
    if facts.architecture not in ("gpt2", "bert"):  # a norm in float32: the peak where the feed-forward is split
        moments.append(rows * facts.hidden * (3 * size + 2 * 4))
    if facts.source.forward:  # all positions have their logits, not the last one alone
        moments.append(logits_bytes(facts, rows, size) + rows * facts.hidden * size)
    if live.qk_norm:
        moments.append(rows * (streams + max(7 * queries, 5 * queries + 4 * keys)) * size)
    return max(fixed + max(moments), _counted(read))


def _counted(read: Pass) -> int:
    """What the architecture's own code took for so many tokens, where that was counted, on a CPU and with the attention
    that it takes by itself; 0 otherwise. What is written out above knows no more than what Llama's layers make."""
    shape, setup = read.shape, read.shape.setup
    counted, wide = dict(shape.facts.counted_workspace), 1
    factors = counted.get("float32" if shape.size == 4 else "bfloat16", ())
    if not factors and shape.size == 4:
        factors, wide = counted.get("bfloat16", ()), 2
    usual = "eager" if shape.facts.lacks_sdpa else "sdpa"
    if not factors or shape.attention != usual or (setup.cuda and usual != "eager"):
        return 0
    if shape.chunked or setup.tensor_parallel > 1 or setup.expert_parallel > 1:
        return 0
    by_tokens, by_rows, squares, row_squares = factors
    per_token = by_tokens + by_rows * shape.batch + (squares + row_squares * shape.batch) * read.tokens
    return int(wide * per_token * read.tokens)


def decode_bytes(shape: Shape) -> int:
    """Peak bytes of temporary tensors in the last decode step. On a GPU `generate` uses batched_mm there, not
    grouped_mm.

    A growing cache allocates the longer tensor before it frees the shorter one: half of a layer's bytes, or all of them
    in a sliding-window layer. The previous step's float32 logits are still alive.
    """
    facts, setup, size, batch = shape.facts, shape.setup, shape.size, shape.batch
    native_mxfp4 = setup.quantization == "mxfp4" or (setup.quantization == "none" and facts.quantization == "mxfp4")
    experts = setup.experts or "grouped_mm"
    if setup.cuda and experts == "grouped_mm" and not native_mxfp4:
        experts = "batched_mm"
    grows, eager = setup.cache.grows, shape.attention == "eager"
    length = shape.last if grows else shape.slots
    repeated = facts.heads != facts.kv_heads and (eager or setup.padded or not grows)
    copies = 2 * batch * facts.heads * facts.head_dim * length * size if repeated else 0
    scores = batch * facts.heads * length * _score_bytes(shape) if eager else 0
    layer = shape.layer_bytes(shape.last)
    grown = grows * (layer if facts.sliding_layers else layer // 2)
    fixed = 2 * batch * length * INDEX_BYTES + logits_bytes(facts, batch, 4)
    feed_forward = _feed_forward(shape, batch, experts)
    return fixed + max(copies + scores, grown, feed_forward, logits_bytes(facts, batch, size + 4))


def logits_bytes(facts: ModelFacts, batch: int, size: int) -> int:
    """Logits of the last position at `size` bytes each (4 more include the float32 copy). An encoder has none."""
    return batch * facts.vocab * size if facts.kind == "decoder" else 0


def _ids(read: Pass) -> int:
    """Token ids, mask and positions; rotary cosines and sines for each layer type."""
    facts, shape = read.shape.facts, read.shape
    kinds = len(set(facts.layer_kinds))
    positions = read.keys * 2 + read.tokens if read.attended else 3 * read.tokens
    return positions * shape.batch * INDEX_BYTES + read.tokens * 2 * kinds * facts.head_dim * shape.size


def _masks(read: Pass) -> int:
    """One mask per layer type: floats for eager attention, else booleans, and only where one is needed."""
    shape = read.shape
    kinds, squares = len(set(shape.facts.layer_kinds)), shape.batch * read.tokens * read.keys
    if shape.attention == "eager":
        return kinds * (squares if read.masked else read.tokens * read.keys) * shape.size
    return kinds * squares * read.masked


def _bias(read: Pass) -> int:
    """Numbers that sdpa makes of a chunk's boolean mask, to add them to the scores
    (aten/src/ATen/native/transformers/attention.cpp, `convert_boolean_attn_mask`)."""
    shape = read.shape
    added = read.masked and "sdpa" in shape.attention and (read.copied or not shape.setup.cuda)
    return shape.batch * read.tokens * read.attended if added else 0


def _score_bytes(shape: Shape) -> int:
    """Bytes per pair of query and key at the peak of eager attention. Scores are converted to float32 before the
    softmax; a GPU does so within it, from float16 alone (aten/src/ATen/native/SoftMax.cpp, `softmax`)."""
    facts, size = shape.facts, shape.size
    if shape.attention != "eager":
        return 3 * size  # scores, masked, and after the softmax
    if facts.architecture == "bloom":
        return 4 * size  # with position biases, masked, after the softmax, and after the dropout
    if facts.sinks:
        return 3 * size  # scores masked, shifted, and after the softmax
    if facts.architecture in ("gpt2", "bert"):
        return 2 * size  # softmax in the compute dtype
    if size == 4:
        return 2 * size
    if shape.float16 and shape.setup.cuda:
        return 2 * size + 4  # masked scores, the float32 softmax, and its copy
    return size + 2 * 4  # masked scores, their float32 copy, and its softmax


def _writes_out_scores(shape: Shape) -> bool:
    """Whether a CPU's sdpa falls back to products of its own: where keys and values have other sizes, and where one KV
    head is left to be broadcast (aten/src/ATen/native/transformers/sdp_utils_cpp.cpp)."""
    facts = shape.facts
    uneven = any(not layers.even for layers in facts.counted_cache)
    broadcast = facts.architecture == "falcon" and facts.kv_heads == 1
    return not shape.setup.cuda and shape.attention == "sdpa" and (uneven or broadcast)


def _feed_forward(shape: Shape, rows: int, experts: str) -> int:
    """Intermediate tensors of the feed-forward, or of the experts in that implementation."""
    facts, setup = shape.facts, shape.setup
    if not facts.experts:
        live, ranks = LIVE_TENSORS.get(facts.architecture, _LiveTensors()), setup.tensor_parallel
        gathered = 2 * facts.intermediate // ranks if live.joined and ranks > 1 else 0
        return rows * (live.inner * facts.intermediate + gathered) * shape.size
    ranks = 1 if experts == "triton" else setup.expert_parallel  # our kernels have room for all pairs on each
    pairs = -(-rows * facts.experts_per_token // ranks)  # of token and expert, routed evenly
    exchanged = 2 * pairs * facts.hidden * shape.size if ranks > 1 else 0  # tokens received, and results sent back
    return exchanged + _experts(facts, experts, rows, pairs, shape.size)


def _experts(facts: ModelFacts, experts: str, rows: int, pairs: int, size: int) -> int:
    """Intermediate tensors of the experts, for `pairs` of token and expert."""
    # gpt-oss has biases, clamped halves and gate times sigmoid; others have gate and up and two products
    inner, width = 9 if facts.sinks else 4, facts.intermediate
    match experts:
        case "batched_mm":  # the expert's weights are copied for each pair
            return pairs * (3 * facts.hidden * width + facts.hidden + width) * size
        case "eager":  # one expert at a time, with an even share of the tokens; a one-hot routing table
            tokens = -(-pairs // facts.experts)
            routing = rows * facts.experts_per_token * facts.experts * INDEX_BYTES
            return (rows * facts.hidden + tokens * (facts.hidden + inner * width)) * size + routing
        case "triton":  # activations; results of each pair in float32, and their sum
            return pairs * (width * size + facts.hidden * 4) + rows * facts.hidden * size
        case _:  # tokens sorted by expert; then weighted results in the original order
            return pairs * max(facts.hidden + inner * width, 4 * facts.hidden) * size
