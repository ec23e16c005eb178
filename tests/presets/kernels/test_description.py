"""What the kernels read from a decoder layer, computed in plain torch, is what the layer itself computes."""

import ast
import copy
import functools
import importlib.util
import inspect
from typing import Any

import pytest
import torch
from torch.nn.functional import gelu, linear, relu, silu
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache

from tests.support.rotation import rotated
from tests.support.tiny_models import WINDOW, tiny
from tests.support.whole_layers import MIXTURES, MODELS, build
from tokendyno.backend.hardware import kernel_packages
from tokendyno.backend.models.router import read_router
from tokendyno.backend.optimizations.whole_layers import LAYERS, PUBLISHED, WHOLE, known_router
from tokendyno.backend.worker.patch import projections
from tokendyno.backend.worker.patch.experts import TRITON
from tokendyno.backend.worker.patch.projections import _computes_whole, fuse

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


def attended(parts: Any, row: Any, keys: Any, values: Any, angles: Any) -> tuple[Any, Any]:
    """What a token mixes from keys, values (HKV, T, D), of which the last are its own; and its key. row: what the first
    product gives."""
    heads, _, size = keys.shape
    rows = row.view(-1, size)
    query, key, _ = rows.split([len(rows) - 2 * heads, heads, heads])
    gates = None
    if parts.opened:
        query, gates = query.view(-1, 2, size).unbind(1)
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
    if (sinks := getattr(parts.attention, "sinks", None)) is not None:
        scores = torch.cat([scores, sinks.view(heads, -1, 1)], -1)
    shares = scores.softmax(-1)[..., : keys.shape[1]]
    mixed = torch.einsum("hgt,htd->hgd", shares, values).reshape(-1)
    return (mixed if gates is None else mixed * torch.sigmoid(gates.reshape(-1))), key


def attended_latents(parts: Any, row: Any, latents: Any, keys: Any, angles: Any) -> tuple[Any, Any]:
    """The same in the absorbed form, from latents (T, rank) and rotated keys (T, size); its latent and key as one."""
    mixer, (w, norm, later, later_norm) = parts.mixer, parts.tensors
    inner, rank, size = parts._replace(eps=parts.inner_eps, offset=0.0), latents.shape[1], keys.shape[1]
    queries, latent, key = row.split([len(row) - rank - size, rank, size])
    if later is not None:
        queries = linear(normed(queries, later_norm, inner), later)
    queries, turned = queries.view(mixer.heads, -1).split([mixer.key_size, size], -1)
    turned, key = (rotated(x, angles[0], angles[1], size, parts.pairs) for x in (turned, key))
    if parts.pairs and len(angles[0]) == size:
        turned, key = (torch.cat([x[..., ::2], x[..., 1::2]], -1) for x in (turned, key))
    of_keys, of_values = w.view(mixer.heads, -1, rank).split([mixer.key_size, mixer.value_size], 1)
    absorbed = torch.einsum("hd,hdr->hr", queries, of_keys)
    weights = ((absorbed @ latents.T + turned @ keys.T) * parts.attention.scaling).softmax(-1)
    mixed = torch.einsum("hr,hvr->hv", weights @ latents, of_values)
    return mixed.reshape(-1), torch.cat([normed(latent, norm, inner), key])


def mixed_by(description: Any, parts: Any, row: Any, past: Any, state: Any) -> tuple[Any, Any]:
    """What a mixer makes of a token with the last inputs of its convolution (channels, taps) and the state of linear
    attention; and that state behind it."""
    mixer, (weight, bias, decay, shift, last) = parts.mixer, parts.tensors

    def convolved(x: Any) -> Any:
        inputs = torch.cat([past[:, 1:], x[:, None]], 1)
        return (inputs * weight).sum(1) + (0 if bias is None else bias)

    if mixer.kind == description.CONVOLUTION:
        first, second, x = row.chunk(3)
        return second * convolved(first * x), None
    heads, each = mixer.heads, mixer.heads // mixer.groups
    values, keys = mixer.value_size * heads, mixer.key_size * mixer.groups

    def of_groups(x: Any) -> Any:
        return x.view(mixer.groups, -1).repeat_interleave(each, 0)

    if mixer.kind == description.STATE_SPACE:
        gate, x, step = row.split([values, mixer.channels, heads])
        x, written, read = silu(convolved(x)).split([values, keys, keys])
        x, step = x.view(heads, -1), torch.nn.functional.softplus(step + shift)[:, None, None]
        state = state * torch.exp(-decay.exp()[:, None, None] * step)
        state = state + step * x[:, :, None] * of_groups(written)[:, None]
        out = torch.einsum("hpn,hn->hp", state, of_groups(read)) + last[:, None] * x
        return out.reshape(-1) * silu(gate), state
    x, gate, beta, step = row.split([mixer.channels, values, heads, heads])
    query, key, value = silu(convolved(x)).split([keys, keys, values])
    query, key = (of_groups(x) * torch.rsqrt(of_groups(x).pow(2).sum(-1, True) + 1e-6) for x in (query, key))
    state = state * torch.exp(-decay.exp() * torch.nn.functional.softplus(step + shift))[:, None, None]
    change = value.view(heads, -1) - torch.einsum("hkv,hk->hv", state, key)
    state = state + key[:, :, None] * (torch.sigmoid(beta)[:, None] * change)[:, None]
    out = torch.einsum("hkv,hk->hv", state, query) * mixer.key_size**-0.5
    out = out * torch.rsqrt(out.pow(2).mean(-1, True) + parts.eps) * last * silu(gate.view(heads, -1))
    return out.reshape(-1), state


def mixed_as_cached(description: Any, past: Any, held: Any, angles: Any, parts: Any, row: Any) -> Any:
    """What attention, or what stands in its place, makes of a token's row, with what a layer cached before it (`past`).
    The key or state that this leaves is held against what the layer cached then."""
    if parts.mixer is None:
        mixed, kept = attended(parts, row, held.keys[0], held.values[0], angles)
        expected = held.keys[0, :, -1]
    elif parts.has_slots():
        cached = held.keys[0, 0], held.values[0, 0]
        mixed, kept = attended_latents(parts, row, *cached, angles)
        expected = torch.cat([one[-1] for one in cached])
    else:
        state, expected = (
            None if one.recurrent_states[0] is None else one.recurrent_states[0][0] for one in (past, held)
        )
        mixed, kept = mixed_by(description, parts, row, past.conv_states[0][0], state)
    if expected is not None:
        torch.testing.assert_close(kept, expected, rtol=1e-4, atol=1e-4)
    return mixed


def added(parts: Any, rows_of: Any, hidden: Any, mixing: Any) -> Any:
    """What attention, or what stands in its place, adds to a token hidden (H,)."""
    first, output = (functools.partial(product, rows_of(one), one.bias) for one in parts.products[:2])
    mixed = mixing(parts, first(normed(hidden, parts.norms[0], parts, parts.shifts[0])))
    if parts.between is not None:
        groups = mixed.view(-1, parts.between.shape[-1])
        mixed = normed(groups, parts.between, parts._replace(offset=0.0)).reshape(-1)
    return parts.gain * normed(output(mixed), parts.norms[1], parts)


def fed_forward(description: Any, parts: Any, matrices: Any, middle: Any) -> Any:
    """What the last two of a layer's matrices make of middle (H,), normalized."""
    wide, down = (functools.partial(product, description.rows_of(one), one.bias) for one in matrices)
    gate, *second = wide(middle).chunk(2) if parts.gated else (wide(middle),)
    if parts.activation == description.GELU:
        act = gelu(gate, approximate="tanh")
    else:
        act = relu(gate).square() if parts.activation == description.RELU2 else silu(gate)
    return down(act * second[0] if second else act)


def computed(description: Any, parts: Any, hidden: Any, mixing: Any, layer: Any) -> Any:
    """The layer of a token hidden (H,), its experts by their own code."""
    before, _, between, last = parts.norms
    if parts.attention is layer:
        middle = normed(hidden, before if parts.experts is None else between, parts)
        out = fed_forward(description, parts, parts.products, middle)
        if parts.experts is not None:
            _, shares, chosen = parts.router(middle[None])
            out = out + parts.experts(middle[None], chosen, shares)[0]
        return hidden + out
    every = [parts] if parts.beside is None else [parts, parts.beside]
    hidden = hidden + sum(added(one, description.rows_of, hidden, mixing) for one in every)
    middle = normed(hidden, between, parts, parts.shifts[2])
    if parts.experts is not None:
        return hidden + (getattr(layer, "mlp", None) or layer.feed_forward)(middle[None, None]).view(-1)
    if len(parts.products) == 2:
        return hidden
    out = fed_forward(description, parts, parts.products[2:], middle)
    return hidden + parts.gain * normed(out, last, parts)


@pytest.mark.parametrize("architecture", [*DENSE, *MIXTURES])
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
        before = copy.deepcopy(cache.layers)
        seen.clear()
        model(ids[:, PROMPT:], past_key_values=cache)
        for past, held, (layer, given, more, out) in zip(before, cache.layers, seen, strict=True):
            parts = description.describe(layer)
            angles = more.get("position_embeddings")
            if isinstance(angles, torch.Tensor):  # complex numbers
                angles = torch.view_as_real(angles).unbind(-1)
            angles = [one.reshape(-1) for one in angles or (torch.zeros(1),) * 2]
            mixing = functools.partial(mixed_as_cached, description, past, held, angles)
            mine = computed(description, parts, given[0].view(-1), mixing, layer)
            out = out[0] if isinstance(out, tuple) else out
            torch.testing.assert_close(mine, out.view(-1), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("architecture", [*DENSE, *MIXTURES])
def test_an_mlp_with_a_joined_gate_is_two_products_and_what_is_between_them(
    description: Any, architecture: str
) -> None:
    model = build(architecture, "float32")
    fuse(model)
    x = torch.randn(1, 3, model.config.hidden_size)
    for mlp in (module for module in model.modules() if projections._has_joined_gate(module)):
        wide, down, act = description.feed_forward(mlp)
        gate, up = wide(x).chunk(2, -1)
        torch.testing.assert_close(down(act(gate) * up), mlp(x))


def test_every_architecture_is_here_and_has_the_classes_that_are_offered() -> None:
    assert set(WHOLE) - set(PUBLISHED) | {"gpt2"} == set(MODELS) | set(MIXTURES)
    for architecture in set(WHOLE) - set(PUBLISHED):
        names = {type(module).__name__ for module in build(architecture).modules()}
        offered = {name for name in LAYERS if name.startswith(WHOLE[architecture].prefix) and name in names}
        assert len(offered) == sum(map(bool, WHOLE[architecture][1:4])), offered


@pytest.mark.parametrize("architecture", sorted(set(WHOLE) - set(PUBLISHED)))
def test_a_layer_takes_what_the_one_that_it_replaces_takes(architecture: str) -> None:
    """The package kernels refuses another number or kind of arguments while a model is loaded."""
    tree = ast.parse((kernel_packages.BUNDLED / "matvec/build/torch-cuda/layers.py").read_text(encoding="utf-8"))
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    ours = {node.name: ast.unparse(last.args) for node in classes if isinstance(last := node.body[-1], ast.FunctionDef)}
    for module in build(architecture).modules():
        layer = LAYERS.get(type(module).__name__, "")
        if layer in ours:
            mine = inspect.signature(eval(f"lambda {ours[layer]}: None")).parameters.values()
            theirs = inspect.signature(type(module).forward).parameters.values()
            assert [one.kind for one in mine] == [one.kind for one in theirs], layer


def test_a_layer_that_is_not_fused_has_no_description(description: Any) -> None:
    assert description.describe(build("qwen2").model.layers[0]) is None


def test_a_layer_that_no_kernel_computes_has_no_description(description: Any) -> None:
    """Multipliers that are not part of rows, a norm before the gate, and projections that are not fused."""
    model = build("falcon_h1")
    fuse(model)
    plain, normed, *_ = model.model.layers
    assert description.describe(plain) is not None and description.describe(normed) is not None
    delattr(plain, description.FOLDED)
    normed.mamba.norm.norm_before_gate = True
    assert description.describe(plain) is None and description.describe(normed) is None
    *_, attention, mlp = tiny("nemotron_h").model.layers
    assert description.describe(attention) is None and description.describe(mlp) is not None


def test_a_layer_whose_rows_heads_interleave_has_no_description(description: Any) -> None:
    """As fused quantized ones do."""
    model = build("qwen3_next")
    fuse(model)
    layer = model.model.layers[0]
    assert description.describe(layer) is not None
    del layer.linear_attn.fix_query_key_value_ordering
    assert description.describe(layer) is None


@pytest.mark.parametrize(
    ("architecture", "odd", "known"),
    [
        *((architecture, {}, True) for architecture in MIXTURES),
        ("deepseek_v2", {"topk_method": "group_limited_greedy", "n_group": 4, "topk_group": 2}, False),
        ("deepseek_v3", {"n_routed_experts": 12}, False),
        ("glm4_moe", {"n_group": 8, "n_routed_experts": 24}, False),
        ("glm4_moe", {"n_group": 1, "n_routed_experts": 12}, True),
        ("nemotron_h", {"moe_latent_size": 64}, False),
        ("olmoe", {"clip_qkv": 8.0}, False),
        ("lfm2_moe", {"use_expert_bias": False}, False),
    ],
)
def test_of_a_router_that_kernels_do_not_know_the_rules_the_worker_and_the_kernels_say_the_same(
    description: Any, architecture: str, odd: dict[str, Any], known: bool
) -> None:
    fields = MIXTURES[architecture] | odd
    config = AutoConfig.for_model(architecture, **fields)
    model = AutoModelForCausalLM.from_config(config).eval()
    fuse(model)
    model.config._experts_implementation = TRITON
    names = "mlp", "mixer", "feed_forward"
    layers = [
        layer for layer in model.model.layers if any(hasattr(getattr(layer, name, 0), "experts") for name in names)
    ]
    assert layers and {description.describe(layer) is None for layer in layers} == {not known}
    assert {_computes_whole(layer) for layer in layers} == {known}
    assert known_router(read_router(architecture, fields.get)) is known
