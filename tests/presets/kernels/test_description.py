"""What the kernels read from a decoder layer, computed in plain torch, is what the layer itself computes."""

import functools
import importlib.util
from typing import Any

import pytest
import torch
from torch.nn.functional import gelu, linear, silu
from transformers import DynamicCache

from tests.support.rotation import rotated
from tests.support.tiny_models import WINDOW
from tests.support.whole_layers import MIXTURES, MODELS, build
from tokendyno.backend.hardware import kernel_packages
from tokendyno.backend.optimizations.whole_layers import LAYERS, WHOLE
from tokendyno.backend.worker.patch.projections import fuse

DENSE = sorted(MODELS.keys() - {"gpt_oss"})
PROMPT = WINDOW - 2


@pytest.fixture(scope="module")
def description() -> Any:
    """The module of the package, which imports no Triton."""
    file = kernel_packages.BUNDLED / "matvec/build/torch-cuda/description.py"
    spec = importlib.util.spec_from_file_location("description", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def normed(x: Any, weight: Any, parts: Any, shift: Any = None) -> Any:
    if weight is None:
        return x
    if shift is not None:
        return torch.nn.functional.layer_norm(x, weight.shape, weight, shift, parts.eps)
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + parts.eps) * (weight + parts.offset)


def product(rows: Any, bias: Any, x: Any) -> Any:
    return linear(x, rows, bias)


def computed(parts: Any, rows_of: Any, hidden: Any, keys: Any, values: Any, angles: Any) -> tuple[Any, Any]:
    """The layer of a token hidden (H,) that attends to keys, values (HKV, T, D), of which the last are its own; and
    its key."""
    qkv, output, wide, down = (functools.partial(product, rows_of(one), one.bias) for one in parts.products)
    before, after, between, last = parts.norms
    heads, _, size = keys.shape
    rows = qkv(normed(hidden, before, parts, parts.shifts[0])).view(-1, size)
    query, key, _ = rows.split([len(rows) - 2 * heads, heads, heads])
    if parts.heads[0] is not None:
        whole = parts.heads[0].numel() != size
        query, key = (
            normed(x.reshape(-1) if whole else x, weight, parts).view(-1, size)
            for x, weight in zip((query, key), parts.heads, strict=True)
        )
    query, key = (rotated(x, angles[0], angles[1], parts.rotated, parts.pairs) for x in (query, key))
    scores = torch.einsum("hgd,htd->hgt", query.view(heads, -1, size), keys) * parts.attention.scaling
    if parts.cap:
        scores = parts.cap * torch.tanh(scores / parts.cap)
    mixed = torch.einsum("hgt,htd->hgd", scores.softmax(-1), values)
    hidden = hidden + parts.gain * normed(output(mixed.reshape(-1)), after, parts)
    up = wide(normed(hidden, between, parts, parts.shifts[2]))
    first, *second = up.chunk(2) if parts.gated else (up,)
    act = gelu(first, approximate="tanh") if parts.gelu else silu(first)
    act = act * second[0] if second else act
    return hidden + parts.gain * normed(down(act), last, parts), key


@pytest.mark.parametrize("architecture", DENSE)
def test_a_described_layer_is_the_layer(description: Any, architecture: str) -> None:
    """Of the token after a prompt."""
    model, seen = build(architecture), []
    fuse(model)
    layers = model.get_decoder().layers if hasattr(model.get_decoder(), "layers") else model.transformer.h
    for layer in layers:
        layer.register_forward_hook(lambda *given: seen.append(given), with_kwargs=True)
    torch.manual_seed(1)
    ids = torch.randint(3, 97, (1, PROMPT + 1))
    cache = DynamicCache(config=model.config)
    with torch.inference_mode():
        model(ids[:, :PROMPT], past_key_values=cache)
        seen.clear()
        model(ids[:, PROMPT:], past_key_values=cache)
        for held, (layer, given, more, out) in zip(cache.layers, seen, strict=True):
            parts = description.describe(layer)
            angles = more.get("position_embeddings") or (torch.zeros(1),) * 2
            mine, key = computed(
                parts,
                description.rows_of,
                given[0].view(-1),
                held.keys[0],
                held.values[0],
                [one.view(-1) for one in angles],
            )
            torch.testing.assert_close(key, held.keys[0, :, -1], rtol=1e-4, atol=1e-4)
            out = out[0] if isinstance(out, tuple) else out
            torch.testing.assert_close(mine, out.view(-1), rtol=1e-3, atol=1e-3)


def test_every_architecture_is_here_and_has_the_classes_that_are_offered() -> None:
    assert set(WHOLE) | {"gpt2"} == set(MODELS) | set(MIXTURES)
    for architecture in WHOLE:
        names = {type(module).__name__ for module in build(architecture).modules()}
        offered = {name for name in LAYERS if name.startswith(WHOLE[architecture].prefix) and name in names}
        assert len(offered) == sum(map(bool, WHOLE[architecture][1:])), offered


def test_a_layer_that_is_not_fused_has_no_description(description: Any) -> None:
    assert description.describe(build("qwen2").model.layers[0]) is None
