"""Fused projections: one linear layer for q, k and v, and one for gate and up, whose rows are concatenated.
The model's code still calls q, then k, then v: the first call computes all of them and keeps the slices of the others.
"""

import math
from typing import Any

import torch
from torch import nn

from tokendyno.backend.errors import InputError
from tokendyno.backend.models.router import read_router
from tokendyno.backend.optimizations.axes.projections import GROUPS, text_modules
from tokendyno.backend.optimizations.whole_layers import LAYERS, known_router
from tokendyno.backend.worker.patch.experts import TRITON
from tokendyno.backend.worker.patch.quantized import Joined4bit, joinable_4bit, lay_together

LAST_FIRST = ("FalconH1MLP",)
"""Classes whose code applies the last matrix of a group before the first."""
WITH_MULTIPLIERS = ("FalconH1DecoderLayer",)
"""Layers whose multipliers are multiplied into their matrices where these are fused."""
FOLDED = "tokendyno_folded"
"""Attribute of such a layer when that is done."""


class Fused(nn.Module):  # type: ignore[misc]
    """The linear layers of a group as one, `whole`. Returns the output of the one that the model's code applies first;
    those of the others wait in `later`."""

    def __init__(self, parts: list[Any], last_first: bool = False) -> None:
        super().__init__()
        self.sizes, self.step = [part.out_features for part in parts], -1 if last_first else 1
        self.whole = Joined4bit(parts) if joinable_4bit(parts) else _whole(parts)
        self.later: list[Any] = []

    def forward(self, x: Any) -> Any:
        """(..., in_features) -> (..., the size of the first)."""
        first, *rest = self.whole(x).split(self.sizes, -1)[:: self.step]
        self.later[:] = [(x, out) for out in reversed(rest)]
        return first


class Slice(nn.Module):  # type: ignore[misc]
    """In the place of a linear layer that is now part of a fused one."""

    def __init__(self, later: list[Any]) -> None:
        super().__init__()
        self.later = later

    def forward(self, x: Any) -> Any:
        """This projection's slice of what the fused layer computed; RuntimeError if that was not from `x`."""
        source, out = self.later.pop()
        if source is not x:
            raise RuntimeError(
                "This model's code does not apply the fused projections to one input, one after the other. Use "
                "projections=separate."
            )
        return out


def fuse(model: Any) -> int:
    """Fuse every group, one at a time; returns how many. InputError where a weight cannot be concatenated."""
    count = 0
    for name, module in text_modules(model):
        for group in GROUPS:
            parts: list[Any] = [getattr(module, part, None) for part in group]
            if not all(isinstance(part, nn.Linear) for part in parts):  # other things may have these names
                continue
            if not joinable_4bit(parts) and not all(type(p) is nn.Linear and joinable(p.weight) for p in parts):
                raise InputError(
                    f"{name}.{group[0]} is quantized in a way that cannot be fused. Use projections=separate or "
                    "quantization=none."
                )
            last_first = type(module).__name__ in LAST_FIRST
            fused, called = Fused(parts, last_first), group[::-1] if last_first else group
            if hasattr(module, "fix_query_key_value_ordering") and type(fused.whole.weight) is nn.Parameter:
                _sort_rows(module, fused)
            setattr(module, called[0], fused)
            for projection in called[1:]:
                setattr(module, projection, Slice(fused.later))
            for part in parts:  # quantized layers are in reference cycles: only a garbage collection would free weights
                part._parameters.clear()
            count += 1
    for module in model.modules() if count else ():
        if type(module).__name__ in WITH_MULTIPLIERS:
            _fold(module)
        if isinstance(module, Joined4bit) or joinable_4bit([module]):
            lay_together(module.weight.quant_state)
    offer_layers(model)
    return count


def _fold(layer: Any) -> None:
    """Multiply the multipliers of a layer of Falcon-H1 into the rows of its matrices, where these are dense, so that
    its own code and kernels have nothing left to multiply."""
    attention, mamba, mlp = layer.self_attn, layer.mamba, layer.feed_forward
    qkv, wide = attention.q_proj.whole, mlp.up_proj.whole
    keys, gates = torch.ones(qkv.out_features), torch.ones(wide.out_features)
    keys.split(attention.q_proj.sizes)[1].fill_(attention.key_multiplier)
    gates[: mlp.up_proj.sizes[0]] = mlp.gate_multiplier
    products = (  # each with what its input and the rows of its result are multiplied with
        (qkv, layer.attention_in_multiplier, keys),
        (attention.o_proj, 1.0, torch.tensor([layer.attn_out_multiplier])),
        (mamba.in_proj, mamba.ssm_in_multiplier, mamba.mup_vector.flatten().float()),
        (mamba.out_proj, 1.0, torch.tensor([layer.ssm_out_multiplier])),
        (wide, 1.0, gates),
        (mlp.down_proj, 1.0, torch.tensor([mlp.down_multiplier])),
    )
    if any(type(product.weight) is not nn.Parameter for product, _, _ in products):
        return
    for product, before, rows in products:
        rows = rows.to(product.weight.device)
        product.weight.data.mul_((before * rows)[:, None])
        if product.bias is not None:
            product.bias.data.mul_(rows)
    layer.attention_in_multiplier = layer.attn_out_multiplier = layer.ssm_out_multiplier = 1.0
    attention.key_multiplier = mamba.ssm_in_multiplier = mlp.gate_multiplier = mlp.down_multiplier = 1.0
    mamba.mup_vector.fill_(1.0)
    setattr(layer, FOLDED, True)


def _sort_rows(module: Any, fused: Fused) -> None:
    """Rows of Qwen3-Next's linear attention, which heads of keys interleave, in the order of Qwen3.5's, so that kernels
    read both alike. The module's own code says which row is what; from now on it only takes them apart."""
    rows = torch.arange(sum(fused.sizes), device=fused.whole.weight.device)
    parts = module.fix_query_key_value_ordering(*rows[None, None].split(fused.sizes, -1))
    fused.whole.weight.data = fused.whole.weight.data[torch.cat([part.flatten() for part in parts])]
    shapes = [part.shape[2:] for part in parts]  # of q, k, v, z; b, a
    sizes = [shape.numel() for shape in shapes]

    def apart(qkvz: Any, ba: Any) -> tuple[Any, ...]:
        every = *qkvz.split(sizes[:4], -1), *ba.split(sizes[4:], -1)
        return tuple(part.unflatten(-1, shape) for part, shape in zip(every, shapes, strict=True))

    module.fix_query_key_value_ordering = apart


def _whole(parts: list[Any]) -> Any:
    """Several linear layers as one nn.Linear."""
    whole = nn.Linear(parts[0].in_features, sum(part.out_features for part in parts), bias=False, device="meta")
    whole.weight = _joined([part.weight for part in parts])
    present = [part.bias for part in parts if part.bias is not None]  # Whisper's keys have none
    if present:
        zeros = present[0].new_zeros
        whole.bias = _joined([zeros(part.out_features) if part.bias is None else part.bias for part in parts])
    return whole


def joinable(weight: Any) -> bool:
    """Whether rows of several such weights can be concatenated: dense, or torchao's 8 bits and 4-bit tiles."""
    return type(weight) is nn.Parameter or _by_rows(weight) or _by_tiles(weight)


def _by_rows(weight: Any) -> bool:
    """Whether it is torchao's 8 bits with a scale for each row, for activations that are not quantized."""
    if type(weight).__name__ not in ("Int8Tensor", "Float8Tensor"):
        return False
    return weight.act_quant_kwargs is None and weight.scale.numel() == weight.shape[0]


def _by_tiles(weight: Any) -> bool:
    """Whether it is torchao's 4 bits in tiles of 8 rows, without padding."""
    if type(weight).__name__ != "Int4TilePackedTo4dTensor":
        return False
    return weight.act_pre_scale is None and weight.dim() == 2 and weight.shape[0] == 8 * weight.qdata.shape[0]


def _joined(weights: list[Any]) -> Any:
    first = weights[0]
    if _by_tiles(first):
        size = torch.Size([sum(weight.shape[0] for weight in weights), first.shape[1]])
        tiles = torch.cat([weight.qdata for weight in weights])  # (rows / 8, columns / 128, 32, 4)
        scales = torch.cat([weight.scale_and_zero for weight in weights], 1)  # (columns / 128, rows, 2)
        return nn.Parameter(type(first)(tiles, scales, first.block_size, size), requires_grad=False)
    if type(first).__name__ != "Int8Tensor":  # dense rows, or torchao's Float8Tensor
        return nn.Parameter(torch.cat([weight.detach() for weight in weights]), requires_grad=False)
    rows, scales = (torch.cat([getattr(weight, name) for weight in weights]) for name in ("qdata", "scale"))
    zeros = None if first.zero_point is None else torch.cat([weight.zero_point for weight in weights])
    whole = type(first)(rows, scales, first.block_size, first.dtype, zeros)
    return nn.Parameter(whole, requires_grad=False)


def offer_layers(model: Any) -> None:
    """Register the model's layers with the package `kernels`, under the names by which kernels may replace them."""
    classes = {type(module) for module in model.modules() if type(module).__name__ in LAYERS}
    if not classes:
        return
    try:
        from kernels import replace_kernel_forward_from_hub
    except ImportError:
        return
    for layer_class in classes:
        replace_kernel_forward_from_hub(layer_class, LAYERS[layer_class.__name__], _computes_whole)
    for mlp_class in {type(module) for module in model.modules() if _has_joined_gate(module)}:
        replace_kernel_forward_from_hub(mlp_class, "GatedMLP", _has_joined_gate)


def _has_joined_gate(module: Any) -> bool:
    """Whether this is an MLP whose gate and up are one matrix, with nothing between its products but an activation."""
    parts = dict(module.named_children())
    joined = isinstance(parts.get("gate_up_proj"), nn.Linear) or "input_linear" in parts
    joined = joined or any(type(parts.get(name)) is Fused for name in ("gate_proj", "up_proj", "w1"))
    return joined and getattr(module, "gate_multiplier", 1.0) == getattr(module, "down_multiplier", 1.0) == 1.0


def _computes_whole(module: Any) -> bool:
    """Whether kernels may replace this layer: its q, k and v are one matrix, and its experts, if any, are computed by
    kernels too."""
    if getattr(module, "block_sparse_moe", None) is not None:  # Granite's experts, beside a shared MLP
        return False
    if type(module).__name__ in WITH_MULTIPLIERS and not hasattr(module, FOLDED):
        return False
    mixer = getattr(module, "mixer", None)  # of Nemotron-H
    space = getattr(module, "mamba", None) or mixer
    sizes = getattr(space, "ssm_state_size", 1), getattr(space, "head_dim", 1)
    most = 1 << 14  # numbers of a head's state, as _MOST_NUMBERS in states.py of the package matvec
    if hasattr(space, "ssm_state_size") and (any(n & (n - 1) for n in sizes) or math.prod(sizes) > most):
        return False
    attention = mixer if hasattr(mixer, "q_proj") else getattr(module, "self_attn", None)
    mlp = getattr(module, "mlp", None) or getattr(module, "feed_forward", mixer)
    experts = getattr(mlp, "experts", None)
    first = getattr(attention, "q_proj", None) or getattr(attention, "q_a_proj", None)
    joined = attention is None or hasattr(attention, "qkv_proj") or type(first) is Fused
    if not joined or experts is None:
        return joined
    config = experts.config
    router = read_router(config.model_type, lambda name: getattr(config, name, None))
    return config._experts_implementation == TRITON and known_router(router)
