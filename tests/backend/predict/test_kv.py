"""The prediction of KV bytes against the tensors of transformers' own caches, byte for byte."""

import functools
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.support.kv import kv_series
from tokendyno.backend.models import CacheLayers, ModelFacts, resolve
from tokendyno.backend.plan import (
    DYNAMIC,
    QUANTIZED_FP8,
    QUANTIZED_HQQ4,
    QUANTIZED_QUANTO4,
    STATIC,
    STATIC_FP8,
    UNWINDOWED,
    CacheKind,
)
from tokendyno.backend.predict.kv import KvBytes, KvPoint, kv_bytes, kv_polyline
from tokendyno.backend.worker.prove.tensor_bytes import layer_bytes

WINDOW = 8
SHAPE: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 16,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 128,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
}
MODELS: dict[str, dict[str, Any]] = {
    "all full": {"model_type": "llama", "num_hidden_layers": 2},
    "all sliding": {"model_type": "mistral", "num_hidden_layers": 2, "sliding_window": WINDOW},
    "alternating": {
        "model_type": "gpt_oss", "num_hidden_layers": 4, "sliding_window": WINDOW, "num_local_experts": 2,
        "num_experts_per_tok": 1, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4},
    },
    "five to one": {"model_type": "gemma3_text", "num_hidden_layers": 7, "sliding_window": WINDOW},
}  # fmt: skip
KINDS = (DYNAMIC, UNWINDOWED, STATIC)
PLACES = 24


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tmp_path_factory.mktemp("models")


def facts_of(name: str, folder: Any) -> ModelFacts:
    path = folder / name.replace(" ", "-")
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(SHAPE | MODELS[name]))
    return resolve(f"random:{path}")


@functools.cache
def model_of(name: str) -> Any:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    config = AutoConfig.for_model(**SHAPE | MODELS[name])
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def cache_of(kind: CacheKind, config: Any) -> Any:
    from transformers import DynamicCache, StaticCache

    if kind.static:
        return StaticCache(config=config, max_cache_len=PLACES)
    return DynamicCache(config=config) if kind.windowed else DynamicCache()


def counted(cache: Any, facts: ModelFacts) -> KvBytes:
    """Logical bytes of the tensors in a cache, split by the model's layer kind."""
    sizes = {"sliding": 0, "full": 0}
    for kind, layer in zip(facts.layer_kinds, cache.layers, strict=True):
        sizes[kind] += sum(t.numel() * t.element_size() for t in (layer.keys, layer.values))
    return KvBytes(sizes["sliding"], sizes["full"])


@pytest.mark.parametrize(("prompt", "batch"), [(5, 1), (20, 2)], ids=lambda number: str(number))
@each_kind
@pytest.mark.parametrize("name", MODELS)
def test_bytes_are_those_of_the_real_cache_before_at_and_past_the_window(
    name: str, kind: CacheKind, prompt: int, batch: int, folder: Any
) -> None:
    import torch

    facts, model = facts_of(name, folder), model_of(name)
    cache, tokens = cache_of(kind, model.config), torch.ones(batch, prompt, dtype=torch.long)
    series = kv_series(facts, kind, prompt, 5, batch, 4, PLACES)
    with torch.inference_mode():
        for expected in series:
            model(tokens, past_key_values=cache, use_cache=True, logits_to_keep=1)
            assert counted(cache, facts) == expected
            tokens = tokens[:, -1:]
    assert series[-1] == kv_bytes(facts, kind, prompt + 4, batch, 4, PLACES)


@each_kind
@pytest.mark.parametrize("name", MODELS)
def test_the_polyline_passes_through_every_point(name: str, kind: CacheKind, folder: Any) -> None:
    facts = facts_of(name, folder)
    for first, last in ((1, 20), (1, 4), (10, 20), (7, 8), (5, 5), (0, 3)):
        corners = kv_polyline(facts, kind, first, last, 2, 4, PLACES)
        assert (corners[0].length, corners[-1].length) == (first, last) and len(corners) <= 3
        for length in range(first, last + 1):
            size = kv_bytes(facts, kind, length, 2, 4, PLACES)
            assert _on(corners, length) == (size.sliding, size.full)


def _on(corners: tuple[KvPoint, ...], length: int) -> tuple[float, float]:
    """The straight line between two corners, at `length`."""
    left = max((c for c in corners if c.length <= length), key=lambda c: c.length)
    right = min((c for c in corners if c.length >= length), key=lambda c: c.length)
    part = (length - left.length) / (right.length - left.length) if right != left else 0.0
    return (left.sliding + part * (right.sliding - left.sliding), left.full + part * (right.full - left.full))


# --- quantized: codes, scales and zero points in groups, and the newest tokens in full precision ---------------------

ROWS, HEADS, HEAD, LAYERS = 3, 2, 32, 2
QUANTIZED = {
    QUANTIZED_FP8: ("fp8", {}),
    QUANTIZED_HQQ4: ("hqq", {"nbits": 4}),
    QUANTIZED_QUANTO4: ("quanto", {"nbits": 4}),
}


def quantized_bytes(facts: ModelFacts, kind: CacheKind, prompt: int, steps: int, rows: int, dtype: Any) -> list[int]:
    """Bytes of transformers' own quantized cache after the prompt and after each of so many tokens more."""
    import torch
    from transformers import AutoConfig, QuantizedCache

    config = AutoConfig.for_model(**json.loads(facts.source.config_json))
    backend, keywords = QUANTIZED[kind]
    cache, sizes = QuantizedCache(backend, config, **keywords), []
    torch.manual_seed(0)
    for tokens in (prompt, *[1] * steps):
        for layer in range(LAYERS):
            cache.update(*(torch.randn(rows, HEADS, tokens, HEAD, dtype=dtype) for _ in range(2)), layer)
        sizes.append(sum(map(layer_bytes, cache.layers)))
    return sizes


@pytest.fixture(scope="module")
def full_facts(folder: Any) -> ModelFacts:
    path = folder / "quantizable"
    path.mkdir()
    shape = {"model_type": "llama", "num_hidden_layers": LAYERS, "num_key_value_heads": HEADS, "head_dim": HEAD}
    (path / "config.json").write_text(json.dumps(SHAPE | shape))
    return resolve(f"random:{path}")


@pytest.mark.parametrize(
    ("kind", "prompt", "dtype", "rows"),
    [(QUANTIZED_FP8, 130, "float16", ROWS), (QUANTIZED_HQQ4, 37, "float32", 1)],
    ids=["fp8", "hqq4"],
)
def test_bytes_are_those_of_the_real_quantized_cache_at_every_token(
    kind: CacheKind, prompt: int, dtype: str, rows: int, full_facts: ModelFacts
) -> None:
    check_quantized(kind, prompt, dtype, rows, full_facts)


@pytest.mark.filterwarnings("ignore")  # optimum-quanto's own, when it is imported
@pytest.mark.parametrize(("prompt", "dtype", "rows"), [(1, "float16", 1), (130, "bfloat16", ROWS)])
def test_bytes_are_those_of_optimum_quantos_cache_at_every_token(
    prompt: int, dtype: str, rows: int, full_facts: ModelFacts
) -> None:
    from tokendyno.backend.worker.patch.quantized import unpack_with_torch

    unpack_with_torch()
    check_quantized(QUANTIZED_QUANTO4, prompt, dtype, rows, full_facts)


@pytest.mark.parametrize(("prompt", "rows"), [(1, 1), (20, ROWS)])
def test_bytes_are_those_of_the_custom_loops_cache_in_8_bits(prompt: int, rows: int, full_facts: ModelFacts) -> None:
    import torch
    from transformers import AutoConfig

    from tokendyno.backend.worker.loop.cache import StaticSlotCache

    cache = StaticSlotCache(AutoConfig.for_model(**json.loads(full_facts.source.config_json)), PLACES, True)
    for layer in range(LAYERS):
        cache.update(*(torch.randn(rows, HEADS, prompt, HEAD, dtype=torch.bfloat16) for _ in range(2)), layer)
    size = sum(map(layer_bytes, cache.layers))
    assert kv_bytes(full_facts, STATIC_FP8, prompt, rows, 2, PLACES) == KvBytes(0, size)
    assert size == LAYERS * 2 * rows * HEADS * PLACES * (HEAD + 4)


def check_quantized(kind: CacheKind, prompt: int, dtype: str, rows: int, facts: ModelFacts) -> None:
    """Past the residual and what follows it, so that a saw-tooth is whole."""
    import torch

    steps, number = 140, getattr(torch, dtype)
    series = kv_series(facts, kind, prompt, steps + 1, rows, number.itemsize)
    assert quantized_bytes(facts, kind, prompt, steps, rows, number) == [at.full for at in series]
    assert not any(at.sliding for at in series)
    most = [kv_bytes(facts, kind, prompt + i, rows, number.itemsize).full for i in range(steps + 1)]
    assert all(at.full <= top for at, top in zip(series, most, strict=True))


@pytest.mark.parametrize("kind", QUANTIZED, ids=lambda kind: kind.name)
def test_the_polyline_of_a_quantized_cache_passes_through_every_point(kind: CacheKind, full_facts: ModelFacts) -> None:
    for first, last in ((1, 300), (37, 164), (37, 165), (37, 166), (5, 5)):
        corners = kv_polyline(full_facts, kind, first, last, 2, 4, 0)
        for length in range(first, last + 1):
            assert _on(corners, length) == pytest.approx((0, kv_bytes(full_facts, kind, length, 2, 4, 0, first).full))


def test_the_series_has_one_entry_for_each_token_and_plateaus() -> None:
    facts = resolve("random:Mistral-7B-v0.1")
    series = kv_series(facts, DYNAMIC, 4_000, 200, 1, 2)
    assert len(series) == 200 and all(at.full == 0 for at in series)
    assert series[95].sliding == series[-1].sliding == 32 * 2 * 8 * 128 * 2 * 4_095
    assert series[94].sliding < series[95].sliding
    assert kv_series(facts, UNWINDOWED, 4_000, 200, 1, 2)[-1].sliding == 32 * 2 * 8 * 128 * 2 * 4_199


def test_an_encoder_has_no_cache() -> None:
    facts = resolve("random:bert-base-uncased")
    assert kv_bytes(facts, DYNAMIC, 100, 8, 4) == KvBytes(0, 0)
    assert kv_polyline(facts, DYNAMIC, 1, 9, 1, 4, 0)[-1] == KvPoint(9, 0, 0)


def test_the_kinds_of_a_cache_are_told_apart_and_states_are_there_from_the_first_token_on() -> None:
    sparse = CacheLayers(2, "full", 12, even=False, latent=True, index_elements=4)
    layers = (CacheLayers(3, "fixed", 0, state_elements=10, state_bytes=7), CacheLayers(1, "full", 8), sparse)
    facts = replace(resolve("random:Llama-3-8B"), counted_cache=layers)
    state = 3 * 2 * (10 * 2 + 7)
    assert [kv_bytes(facts, DYNAMIC, length, 2, 2) for length in (0, 1, 5)] == [
        KvBytes(0, 0, 0),
        KvBytes(0, 2 * 8 * 2, state, 2 * 2 * 8 * 2, 2 * 2 * 4 * 2),
        KvBytes(0, 5 * 2 * 8 * 2, state, 5 * 2 * 2 * 8 * 2, 5 * 2 * 2 * 4 * 2),
    ]
    last, size = kv_polyline(facts, DYNAMIC, 1, 5, 2, 2, 0)[-1], kv_bytes(facts, DYNAMIC, 5, 2, 2)
    assert last == KvPoint(5, 0, size.total, size.latent, state, size.index) and size.unwindowed == size.total


def test_a_static_cache_that_is_too_small_is_an_error() -> None:
    with pytest.raises(ValueError, match="cannot hold 11"):
        kv_bytes(resolve("random:pocket"), STATIC, 11, 1, 2, 10)
