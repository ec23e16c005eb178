"""What lives beside weights and cache at the two high points of a run: the prompt's pass, and the last token.

Read from the modelling code of transformers 5.22 as copies of the widths that are alive at once; tests run that code
on tensors without memory and compare. `rows` are tokens in flight: batch x prompt in the prompt's pass, the batch in a
step.
"""

from dataclasses import dataclass
from typing import NamedTuple

from backend.models import ModelFacts

INDEX_BYTES = 8  # token ids, positions, indices of experts: int64


class _Habits(NamedTuple):
    """Copies that an architecture keeps while a layer's feed-forward is at its largest.

    streams  of the hidden state: embeddings, the layer's input, the residual, its normed copy
    inner    of the feed-forward's width: gate, up, their product
    normed   queries and keys of all heads together are normed, with copies in float32
    joined   gate and up are one tensor, which several GPUs gather: beside it their own part, and one more of it
    """

    streams: int = 4
    inner: int = 3
    normed: bool = False
    joined: bool = False


HABITS = {
    "gpt2": _Habits(6, 4),  # two embeddings; its tanh is spelled out: power, product, sum
    "bert": _Habits(3, 2),
    "olmo2": _Habits(3, 3, normed=True),  # no norm before a block
    "olmo3": _Habits(3, 3, normed=True),
    "phi3": _Habits(4, 4, joined=True),  # gate and up are one tensor that lives on
}


@dataclass(frozen=True, slots=True)
class Work:
    """How much is in flight, and by which implementations.

    length     tokens that attention sees: the prompt's, or those in the cache
    size       bytes of a number of the compute dtype
    attention  "eager" or any other name; experts: "grouped_mm", "batched_mm" or "eager"
    masked     a mask is made and keys and values are copied for each query head: padding, windows, static caches
    ranks      GPUs that share the matrices
    owners     GPUs that each own a part of the experts: tokens are sent to them, evenly spread in this prediction
    """

    batch: int
    length: int
    size: int
    attention: str
    experts: str = "grouped_mm"
    masked: bool = False
    ranks: int = 1
    owners: int = 1


def prefill_bytes(facts: ModelFacts, work: Work) -> int:
    """Largest sum of temporaries while the prompt of `work.length` tokens goes through the last layer."""
    rows = work.batch * work.length
    habits = HABITS.get(facts.architecture, _Habits())
    eager, fixed = work.attention == "eager", _ids(facts, work) + _masks(facts, work)
    scores = work.batch * facts.heads * work.length * work.length if eager else 0
    queries, keys = facts.heads * facts.head_dim, facts.kv_heads * facts.head_dim
    copied = 2 * queries if facts.heads != facts.kv_heads and (eager or work.masked) else 0
    streams = (habits.streams - 1) * facts.hidden
    moments = [
        rows * habits.streams * facts.hidden * work.size + _feed_forward(facts, work, rows) + scores * work.size,
        rows * (streams + 2 * queries + copied) * work.size + scores * _score_bytes(facts, work.size),
        rows * (streams + 4 * queries + 2 * keys) * work.size,  # rotary embedding of the queries
        logits_bytes(facts, work.batch, work.size + 4),
    ]
    if facts.architecture not in ("gpt2", "bert"):  # a norm in float32, which a feed-forward that is split falls below
        moments.append(rows * facts.hidden * (3 * work.size + 2 * 4))
    if habits.normed:
        moments.append(rows * (streams + max(7 * queries, 5 * queries + 4 * keys)) * work.size)
    return fixed + max(moments)


def decode_bytes(facts: ModelFacts, work: Work, kv_layer_bytes: int, grows: bool) -> int:
    """Largest sum of temporaries of the step that attends to `work.length` tokens.

    A growing cache writes the longer tensor before it drops the shorter one: half of a layer, and the whole layer
    where it has a window. The step before has left its float32 logits.
    """
    eager = work.attention == "eager"
    copied = facts.heads != facts.kv_heads and (eager or work.masked)
    copies = 2 * work.batch * facts.heads * facts.head_dim * work.length * work.size if copied else 0
    scores = work.batch * facts.heads * work.length * _score_bytes(facts, work.size) if eager else 0
    grown = (kv_layer_bytes if facts.sliding_layers else kv_layer_bytes // 2) if grows else 0
    feed_forward = _feed_forward(facts, work, work.batch)
    fixed = 2 * work.batch * work.length * INDEX_BYTES + logits_bytes(facts, work.batch, 4)
    return fixed + max(copies + scores, grown, feed_forward, logits_bytes(facts, work.batch, work.size + 4))


def logits_bytes(facts: ModelFacts, batch: int, size: int) -> int:
    """The newest position's logits, at `size` bytes each: 4 more with the copy to choose from. An encoder has none."""
    return batch * facts.vocab * size if facts.kind == "decoder" else 0


def _ids(facts: ModelFacts, work: Work) -> int:
    """Ids, mask and positions; cosines and sines of the positions, for each kind of layer."""
    kinds = len(set(facts.layer_kinds))
    return work.length * (3 * work.batch * INDEX_BYTES + 2 * kinds * facts.head_dim * work.size)


def _masks(facts: ModelFacts, work: Work) -> int:
    """One mask for each kind of layer: numbers for eager attention, else truth values, and only where one is needed."""
    kinds, squares = len(set(facts.layer_kinds)), work.batch * work.length * work.length
    if work.attention == "eager":
        return kinds * (squares if work.masked else work.length * work.length) * work.size
    return kinds * squares if work.masked else 0


def _score_bytes(facts: ModelFacts, size: int) -> int:
    """Bytes for each pair of a query and a key while eager attention is at its largest."""
    if facts.sinks:
        return 4 * size  # masked, shifted, softmax, without the sink
    if facts.architecture in ("gpt2", "bert"):
        return 2 * size  # softmax in the compute dtype
    return 2 * size + 4 if size < 4 else 2 * size  # masked, and the softmax in float32 with its copy


def _feed_forward(facts: ModelFacts, work: Work, rows: int) -> int:
    """Inner copies of the feed-forward, or of the experts that are at work."""
    if not facts.experts:
        habits = HABITS.get(facts.architecture, _Habits())
        gathered = 2 * facts.intermediate // work.ranks if habits.joined and work.ranks > 1 else 0
        return rows * (habits.inner * facts.intermediate + gathered) * work.size
    pairs, width = -(-rows * facts.experts_per_token // work.owners), facts.intermediate
    if work.owners > 1:  # the tokens that were sent here, and their results on the way back
        return 2 * pairs * facts.hidden * work.size + _experts(facts, work, rows, pairs, width)
    return _experts(facts, work, rows, pairs, width)


def _experts(facts: ModelFacts, work: Work, rows: int, pairs: int, width: int) -> int:
    """Inner copies of experts that work on so many pairs of token and expert."""
    inner = (
        9 if facts.sinks else 4
    )  # gpt-oss: biases, clamped halves, gate times sigmoid; else gate and up, two products
    match work.experts:
        case "batched_mm":  # a copy of its expert's weights for each pair of token and expert
            return pairs * (3 * facts.hidden * width + facts.hidden + width) * work.size
        case "eager":  # one expert at a time, here with its even share of the tokens; a table of who works for whom
            share = -(-pairs // facts.experts)
            return (
                rows * facts.hidden * work.size
                + share * (facts.hidden + inner * width) * work.size
                + (rows * facts.experts_per_token * facts.experts * INDEX_BYTES)
            )
        case _:  # tokens sorted by expert; then results, weighted, and put back in order
            return pairs * max(facts.hidden + inner * width, 4 * facts.hidden) * work.size
