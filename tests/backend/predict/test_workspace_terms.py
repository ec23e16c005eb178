"""Each moment at which a pass may need most, added up by hand for shapes in which it is the largest.

The slow tier runs transformers' own code and compares (test_workspace.py).
"""

from dataclasses import replace
from typing import Any

import pytest

from tokendyno.backend.models import ModelFacts, resolve
from tokendyno.backend.plan import CACHES, STATIC
from tokendyno.backend.predict.memory import MIB, peak_bytes
from tokendyno.backend.predict.setup import Setup
from tokendyno.backend.predict.workspace import LIVE_TENSORS, Work, decode_bytes, logits_bytes, prefill_bytes

ROWS = 100
KV = 10**9
"""Bytes of a layer's cache, larger than anything else."""


def shape(architecture: str = "llama", **more: Any) -> ModelFacts:
    """32 queries on 4 heads of 8, hidden size 64, feed-forward of 16, a vocabulary of one, one kind of layer."""
    base = resolve("random:bert-base-uncased" if architecture == "bert" else "random:Llama-3-8B")
    known = {"hidden": 64, "intermediate": 16, "heads": 4, "kv_heads": 4, "head_dim": 8, "vocab": 1}
    return replace(base, architecture=architecture, **{**known, **more})


def prefill(facts: ModelFacts, attention: str = "sdpa", **more: Any) -> int:
    """Without ids, positions and rotary tables, which every pass has: 3 x 8 bytes a token, 2 tables of 8 x 2 bytes."""
    size: int = more.pop("size", 2)
    batch: int = more.pop("batch", 1)
    work = Work(batch, ROWS // batch, size, attention, **more)
    tables = 2 * len(set(facts.layer_kinds)) * facts.head_dim * size
    return prefill_bytes(facts, work) - work.length * (3 * batch * 8 + tables)


def test_the_feed_forward_holds_its_streams_and_inner_tensors() -> None:
    for architecture, streams, inner in (
        ("llama", 4, 3),
        ("gpt2", 6, 4),
        ("bert", 3, 2),
        ("olmo2", 3, 3),
        ("olmo3", 3, 3),
        ("phi3", 4, 4),
    ):
        facts = shape(architecture, intermediate=4_000)
        assert prefill(facts) == ROWS * (streams * 64 + inner * 4_000) * 2, architecture


def test_attention_holds_queries_and_keys_beside_one_stream_less() -> None:
    rotary = shape(heads=64, kv_heads=8)  # 512 queries, 64 keys
    assert prefill(rotary) == ROWS * (3 * 64 + 4 * 512 + 2 * 64) * 2
    even = shape(heads=64, kv_heads=64)
    assert prefill(even) == ROWS * (3 * 64 + 4 * 512 + 2 * 512) * 2


def test_repeated_heads_count_where_there_is_a_mask_or_eager_attention() -> None:
    grouped, even = shape(heads=64, kv_heads=1), shape(heads=64, kv_heads=64)
    scores = 64 * ROWS * ROWS * 10  # one in bfloat16, two in float32
    mask = ROWS * ROWS
    assert prefill(grouped, "eager") == ROWS * (3 * 64 + 3 * 512) * 2 + scores + mask * 2
    assert prefill(even, "eager") == ROWS * (3 * 64 + 512) * 2 + scores + mask * 2
    assert prefill(grouped, masked=True) == ROWS * (3 * 64 + max(4 * 512, 4 * 512 + 2 * 8)) * 2 + mask
    assert prefill(even, masked=True) == ROWS * (3 * 64 + 6 * 512) * 2 + mask


@pytest.mark.parametrize(("architecture", "size", "bytes_a_score"), [("llama", 2, 10), ("llama", 4, 8), ("bert", 2, 4)])
def test_scores_of_eager_attention(architecture: str, size: int, bytes_a_score: int) -> None:
    facts = shape(architecture, heads=1_000, kv_heads=1_000, head_dim=1)
    streams = (LIVE_TENSORS[architecture].streams if architecture == "bert" else 4) - 1
    queries = 1_000 if bytes_a_score == 10 else 2 * 1_000  # which of two moments has the peak
    expected = ROWS * (streams * 64 + queries) * size + 1_000 * ROWS * ROWS * bytes_a_score + ROWS * ROWS * size
    assert prefill(facts, "eager", size=size) == expected


@pytest.mark.parametrize("architecture", ["olmo2", "olmo3"])
def test_norms_over_all_heads_are_in_float32(architecture: str) -> None:
    """Seven tensors of queries, or five and four of keys."""
    few = shape(architecture, heads=64, kv_heads=8)
    many = shape(architecture, heads=64, kv_heads=64)
    assert prefill(few) == ROWS * (2 * 64 + 7 * 512) * 2
    assert prefill(many) == ROWS * (2 * 64 + 5 * 512 + 4 * 512) * 2


def test_a_norm_in_float32_and_the_logits_of_the_last_position() -> None:
    narrow = shape(heads=1, kv_heads=1, head_dim=1, intermediate=1)
    assert prefill(narrow, size=1) == ROWS * 64 * (3 * 1 + 2 * 4)
    for architecture in ("gpt2", "bert"):  # whose norms are torch's own
        assert prefill(shape(architecture, heads=1, kv_heads=1, head_dim=1, intermediate=1), size=1) < ROWS * 64 * 11
    assert prefill(shape(vocab=10**6), batch=2) == 2 * 10**6 * (2 + 4)
    assert logits_bytes(shape("bert", vocab=10**6), 1, 6) == 0


def test_masks_and_tables_are_made_for_each_kind_of_layer() -> None:
    both = shape(layer_kinds=("full", "sliding") * 16)
    one, two = (prefill_bytes(facts, Work(1, ROWS, 2, "sdpa", masked=True)) for facts in (shape(), both))
    assert two - one == ROWS * ROWS + ROWS * 2 * 8 * 2
    batch = prefill_bytes(both, Work(3, ROWS, 2, "eager", masked=True)) - prefill_bytes(both, Work(3, ROWS, 2, "eager"))
    assert batch == 2 * 2 * ROWS * ROWS * 2, "a mask for each sequence where prompts are padded"


def test_a_chunk_of_a_prompt_has_mask_and_positions_of_all_that_it_attends_to() -> None:
    """And ids of its own."""
    narrow = shape(heads=1, kv_heads=1, head_dim=2, intermediate=1)
    ids, tables = (2 * 500 + ROWS) * 8, 2 * ROWS * 2 * 2
    norm = ROWS * 64 * (3 * 2 + 2 * 4)
    assert prefill_bytes(narrow, Work(1, ROWS, 2, "sdpa", attended=500)) == norm + ids + tables


def decode(facts: ModelFacts, attention: str = "sdpa", layer: int = 0, grows: bool = True, **more: Any) -> int:
    """Without what every step has: ids and positions, and the float32 logits of the step before."""
    work = Work(1, ROWS, 2, attention, **more)
    return decode_bytes(facts, work, layer, grows) - 2 * ROWS * 8 - facts.vocab * 4


def test_a_step_repeats_heads_for_a_mask_or_eager_attention_alone() -> None:
    grouped, even = shape(heads=64, kv_heads=8), shape(heads=64, kv_heads=64)
    copies, scores = 2 * 512 * ROWS * 2, 64 * ROWS * 10
    assert decode(grouped, masked=True) == copies
    assert decode(grouped, "eager") == copies + scores
    assert decode(even, "eager") == scores
    assert decode(grouped) == decode(even, masked=True) == 3 * 16 * 2, "the feed-forward"


def test_a_growing_cache_holds_a_layer_twice_for_a_moment() -> None:
    windowed = shape(layer_kinds=("sliding",) * 32, window=50)
    windowed = replace(resolve("random:Mistral-7B-v0.1"), vocab=1)
    assert decode(shape(), layer=KV) == KV // 2
    assert decode(windowed, layer=KV) == KV
    assert decode(shape(), layer=KV, grows=False) == 3 * 16 * 2


@pytest.mark.parametrize("sinks", [False, True])
def test_experts(sinks: bool) -> None:
    facts = replace(
        resolve("random:gpt-oss-20b"),
        sinks=sinks,
        hidden=64,
        intermediate=1_000,
        vocab=1,
        heads=1,
        kv_heads=1,
        head_dim=1,
        experts=4,
        experts_per_token=2,
    )
    inner = 9 if sinks else 4
    grouped = ROWS * 4 * 64 * 2 + 2 * ROWS * (64 + inner * 1_000) * 2
    assert prefill(facts) == grouped
    batched = ROWS * 4 * 64 * 2 + 2 * ROWS * (3 * 64 * 1_000 + 64 + 1_000) * 2
    assert prefill(facts, experts="batched_mm") == batched
    shared = ROWS * 4 * 64 * 2 + 100 * (2 * 64 + 64 + inner * 1_000) * 2  # half of the pairs, sent there and back
    assert prefill(facts, expert_ranks=2) == shared
    kernels = 2 * ROWS * (1_000 * 2 + 64 * 4) + ROWS * 64 * (4 + 2)
    assert prefill(facts, experts="triton") == ROWS * 4 * 64 * 2 + kernels
    narrow = replace(facts, intermediate=1)
    assert prefill(narrow) == ROWS * 4 * 64 * 2 + 2 * ROWS * 4 * 64 * 2, "results of each pair, put in order"
    one = ROWS * 64 * 2 + 50 * (64 + inner * 1_000) * 2 + ROWS * 2 * 4 * 8
    assert prefill(facts, experts="eager") == ROWS * 4 * 64 * 2 + one


def test_a_decode_step_copies_experts_on_a_gpu_unless_they_have_kernels_or_are_asked_for() -> None:
    facts, mxfp4 = resolve("random:gpt-oss-20b"), resolve("gpt-oss-20b")
    gpu: dict[str, Any] = {"device": "cuda", "capability": (9, 0), "cache": STATIC}
    copied = 4 * 3 * 2880 * 2880 * 2  # weights of the four experts of one token

    def workspace(model: ModelFacts, **more: Any) -> int:
        return peak_bytes(model, Setup(**{**gpu, **more}), 1, 1).workspace

    assert workspace(facts) > copied
    assert workspace(facts, experts="batched_mm") == workspace(facts)
    for quiet in (
        workspace(facts, experts="grouped_mm", device="cpu"),
        workspace(facts, quantization="mxfp4"),
        workspace(mxfp4),
    ):
        assert quiet < copied
    assert workspace(mxfp4, quantization="mxfp4-dequantized") > copied


def test_a_step_has_a_mask_where_the_cache_is_static_or_the_prompt_padded() -> None:
    facts = resolve("random:Llama-3-8B")  # 32 query heads on 8
    copies = 2 * 32 * 128 * 60_000 * 2
    for padded, cache, masked in ((False, "dynamic", False), (True, "dynamic", True), (False, "static", True)):
        setup = Setup(cache=CACHES[cache], padded=padded, attention="sdpa")
        found = peak_bytes(facts, setup, 1, 60_000).workspace
        assert (found > copies) is masked, (padded, cache)
    assert copies > 400 * MIB


def test_a_gpu_converts_scores_to_float32_within_their_softmax_from_float16_alone() -> None:
    facts = resolve("random:Llama-3-8B")
    half, brain = (
        peak_bytes(facts, Setup(dtype=dtype, attention="eager", cache=STATIC, device="cuda"), 1, 60_000).workspace
        for dtype in ("float16", "bfloat16")
    )
    assert brain - half == facts.heads * 60_001 * 2


@pytest.mark.parametrize(("architecture", "more"), [("phi3", 2), ("llama", 0)])
def test_gate_and_up_in_one_tensor_are_gathered_beside_their_shards(architecture: str, more: int) -> None:
    wide = shape(architecture, intermediate=4_000)
    assert prefill(wide, tensor_ranks=2) - prefill(wide) == ROWS * more * 4_000 // 2 * 2
