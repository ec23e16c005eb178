"""A prompt in chunks: what the cache holds after the passes that matter, and temporary tensors of one chunk."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.backend.predict.test_workspace import both
from tests.support.live_tensors import peaks
from tests.support.machines import facts
from tests.support.tiny_models import CONFIGS, WINDOW, tiny
from tokendyno.backend.plan import DYNAMIC, STATIC, UNWINDOWED, CacheKind
from tokendyno.backend.predict.memory import peak_bytes
from tokendyno.backend.predict.setup import Setup
from tokendyno.backend.predict.shape import Pass, Shape
from tokendyno.backend.predict.workspace import prefill_bytes

MIB = 1 << 20


@pytest.mark.parametrize(
    ("length", "chunk", "read"),
    [
        (1300, 0, [(1300, 0)]),
        (512, 512, [(512, 0)]),
        (300, 512, [(300, 0)]),
        (1300, 512, [(512, 1024), (276, 1300)]),
        (1024, 512, [(512, 1024)]),
        (513, 512, [(512, 512), (1, 513)]),
    ],
)
def test_the_last_full_chunk_and_what_is_left_matter(length: int, chunk: int, read: list[tuple[int, int]]) -> None:
    setup = Setup(dtype="float32", chunk=chunk)
    found = Shape(facts("random:Llama-3-8B"), setup, length, 8).passes()
    assert [(one.tokens, one.attended) for one in found] == read


@pytest.mark.parametrize(("cache", "before"), [(DYNAMIC, [512, 1024]), (STATIC, [0, 0])], ids=["dynamic", "static"])
def test_only_a_growing_cache_makes_longer_tensors_beside_those_of_the_chunks_before(
    cache: CacheKind, before: list[int]
) -> None:
    """Keys of 8 heads of 128 in float32; a static cache is written in place."""
    setup = Setup(dtype="float32", cache=cache, chunk=512)
    passes = Shape(facts("random:Llama-3-8B"), setup, 1300, 100, 3).passes()
    assert [read.grown for read in passes] == [tokens * 3 * 8 * 128 * 4 for tokens in before]
    assert [read.attended for read in passes] == ([1024, 1300] if cache.grows else [1400, 1400])


@pytest.mark.parametrize("cache", [DYNAMIC, UNWINDOWED, STATIC], ids=lambda kind: kind.name)
@pytest.mark.parametrize("architecture", ["mistral", "olmo3"])
def test_the_cache_holds_what_a_real_one_holds_after_each_pass(
    architecture: str, cache: CacheKind, tmp_path: Path
) -> None:
    """Bytes of the storages: tensors of a window are views of all that a chunk attended to."""
    import json

    from transformers import DynamicCache, StaticCache

    from tokendyno.backend.models import resolve

    model, length, chunk, places = tiny(architecture), 53, 12, 60
    (tmp_path / "config.json").write_text(json.dumps({"model_type": architecture, **CONFIGS[architecture]}))
    setup = Setup(dtype="float32", cache=cache, chunk=chunk)
    read = Shape(resolve(str(tmp_path)), setup, length, places - length, 2).passes()
    real: Any = DynamicCache(config=model.config if cache.windowed else None)
    if cache.static:
        real = StaticCache(model.config, places)
    ids, seen = torch.ones(2, length, dtype=torch.long), {}
    with torch.inference_mode():
        for begin in range(0, length, chunk):
            model(input_ids=ids[:, begin : begin + chunk], past_key_values=real)
            tensors = [one for layer in real.layers for one in (layer.keys, layer.values)]
            seen[min(length, begin + chunk)] = sum(one.untyped_storage().nbytes() for one in tensors)
    assert chunk > WINDOW
    assert [one.kv.total for one in read] == [seen[48], seen[53]]


IN_CI = 3
CASES = [
    ("llama", "sdpa"),
    ("gemma3 past its window", "sdpa"),
    ("gpt-oss", "eager"),
    ("llama", "eager"),
    ("gpt2", "eager"),
    ("qwen3 mixture", "sdpa"),
    ("olmo2", "sdpa"),
]


@pytest.mark.parametrize(
    ("name", "attention", "places"),
    [
        *(
            pytest.param(*case, 0, marks=() if number < IN_CI else pytest.mark.full)
            for number, case in enumerate(CASES)
        ),
        ("llama", "sdpa", 1100),
        pytest.param("gpt-oss", "eager", 1100, marks=pytest.mark.full),
    ],
)
def test_a_chunk_needs_what_the_model_code_makes(tmp_path: Path, name: str, attention: str, places: int) -> None:
    """Fake tensors: sdpa makes no numbers of the mask there, as it does on devices."""
    config, model = both(tmp_path, name)
    size, tokens, length, batch = 4 if model.dtype == "float32" else 2, 256, 1024, 2
    real = peaks(config, attention, batch, length, chunk=tokens, places=places).prefill
    cache = STATIC if places else UNWINDOWED
    setup = Setup(cache=cache, attention=attention, device="cuda", chunk=tokens, max_places=places or None)
    read = Pass(Shape(model, setup, length, 1, batch), tokens, length)
    bias = batch * tokens * read.attended * size if attention == "sdpa" else 0
    assert real <= prefill_bytes(read) * 1.03
    assert prefill_bytes(read) <= real * 1.03 + bias


MEASURED = [
    (DYNAMIC, 8_192, 0, 1956.1), (DYNAMIC, 8_192, 2_048, 1281.3), (DYNAMIC, 8_192, 512, 1186.6),
    (STATIC, 8_192, 0, 1972.1), (STATIC, 8_192, 2_048, 1302.1), (STATIC, 8_192, 512, 1204.8),
    (DYNAMIC, 32_000, 0, 7648.1), (DYNAMIC, 32_000, 2_048, 4669.8), (DYNAMIC, 32_000, 512, 4535.2),
    (STATIC, 32_000, 0, 7662.6), (STATIC, 32_000, 2_048, 4790.8),
]  # fmt: skip
"""Cache, tokens of the prompt and of a chunk -> MiB that PyTorch's allocator held at most beside the weights and the
workspace of cuBLAS: Llama-3-8B, one new token, on one H200, sdpa, torch 2.11 and transformers 5.22."""


@pytest.mark.parametrize(("cache", "length", "chunk", "mib"), MEASURED)
def test_it_is_near_what_one_h200_measured(cache: CacheKind, length: int, chunk: int, mib: float) -> None:
    setup = Setup(dtype="bfloat16", cache=cache, device="cuda", capability=(9, 0), chunk=chunk)
    memory = peak_bytes(Shape(facts("random:Llama-3-8B"), replace(setup, max_places=length + 128), length, 1))
    assert (memory.tensors - memory.weights) / MIB - 32 == pytest.approx(mib, rel=0.003)


def test_smaller_chunks_never_need_more_and_flash_kernels_need_no_copies() -> None:
    model, sizes = facts("random:Llama-3-8B"), (0, 8192, 2048, 512)
    for attention in ("eager", "sdpa", "flash_attention_2"):
        setup = Setup(dtype="bfloat16", device="cuda", attention=attention)
        workspaces = [peak_bytes(Shape(model, replace(setup, chunk=chunk), 30_000, 8)).workspace for chunk in sizes]
        assert sorted(workspaces, reverse=True) == workspaces and workspaces[0] > 3 * workspaces[-1], attention
    copies = 2 * 4096 * 30_000 * 2
    flash, sdpa = (
        peak_bytes(Shape(model, Setup(dtype="bfloat16", device="cuda", attention=one, chunk=512), 30_000, 8)).workspace
        for one in ("flash_attention_2", "sdpa")
    )
    assert sdpa - flash > 0.8 * copies


def test_grouped_heads_are_not_copied_where_a_flash_kernel_may_take_a_chunk() -> None:
    """tests/gpu/test_prefill.py shows that it does: in 16 bits, without padding and windows."""

    def workspace(model: str, attention: str, **more: Any) -> int:
        setup = Setup(dtype="bfloat16", device="cuda", attention=attention, chunk=512)
        return peak_bytes(Shape(facts(model), replace(setup, **more), 30_000, 8)).workspace

    saved = workspace("random:Llama-3-8B", "sdpa") - workspace("random:Llama-3-8B", "sdpa-gqa")
    assert saved > 0.8 * 2 * 4096 * 30_000 * 2
    for model, more in (
        ("random:Llama-3-8B", {"padded": True}),
        ("random:Llama-3-8B", {"dtype": "float32"}),
        ("random:Olmo-3-7B", {}),
    ):
        assert workspace(model, "sdpa-gqa", **more) == workspace(model, "sdpa", **more)
    on_cpu = {"dtype": "float32", "device": "cpu", "padded": True}
    assert workspace("random:Llama-3-8B", "sdpa-gqa", **on_cpu) < workspace("random:Llama-3-8B", "sdpa", **on_cpu)
