"""Fused projections: one linear layer for q, k and v, and one for gate and up.

The rows of the weights are concatenated, so each result is a slice of one product. The model's code is unchanged: it
still calls q, then k, then v. The first call computes all of them and keeps the other slices for the calls that follow.
"""

from typing import Any

import torch
from torch import nn

from tokendyno.backend.errors import InputError
from tokendyno.backend.optimizations.axes.projections import GROUPS, LAST_FIRST, text_modules
from tokendyno.backend.optimizations.whole_layers import LAYERS
from tokendyno.backend.worker.patch.experts import TRITON
from tokendyno.backend.worker.patch.quantized import Joined4bit, joinable_4bit, lay_together


class Fused(nn.Module):  # type: ignore[misc]
    """The linear layers of a group as one, `whole`. Returns the output of the first; those of the others wait in
    `later`."""

    def __init__(self, parts: list[Any]) -> None:
        super().__init__()
        self.sizes = [part.out_features for part in parts]
        self.whole = Joined4bit(parts) if joinable_4bit(parts) else _whole(parts)
        self.later: list[Any] = []

    def forward(self, x: Any) -> Any:
        """(..., in_features) -> (..., the first size)."""
        first, *rest = self.whole(x).split(self.sizes, -1)
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
            group = group[::-1] if type(module).__name__ in LAST_FIRST else group
            parts: list[Any] = [getattr(module, part, None) for part in group]
            if not all(isinstance(part, nn.Linear) for part in parts):  # other things may have these names
                continue
            if not joinable_4bit(parts) and not all(type(p) is nn.Linear and joinable(p.weight) for p in parts):
                raise InputError(
                    f"{name}.{group[0]} is quantized in a way that cannot be fused. Use projections=separate or "
                    "quantization=none."
                )
            fused = Fused(parts)
            if hasattr(module, "fix_query_key_value_ordering") and type(fused.whole.weight) is nn.Parameter:
                _sort_rows(module, fused)
            setattr(module, group[0], fused)
            for projection in group[1:]:
                setattr(module, projection, Slice(fused.later))
            for part in parts:  # quantized layers are in reference cycles: only a garbage collection would free weights
                part._parameters.clear()
            count += 1
    for module in model.modules() if count else ():
        if isinstance(module, Joined4bit) or joinable_4bit([module]):
            lay_together(module.weight.quant_state)
    offer_layers(model)
    return count


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
    biases = [part.bias for part in parts]
    present = next((bias for bias in biases if bias is not None), None)
    if present is not None:
        zeros = [present.new_zeros(part.out_features) for part in parts]  # for parts without: Whisper's keys
        whole.bias = _joined([zero if bias is None else bias for zero, bias in zip(zeros, biases, strict=True)])
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
    if not _by_rows(first):
        return nn.Parameter(torch.cat([weight.data for weight in weights]), requires_grad=False)
    rows, scales = (torch.cat([getattr(weight, name) for weight in weights]) for name in ("qdata", "scale"))
    args: tuple[Any, ...]
    if type(first).__name__ == "Float8Tensor":
        args = (first.mm_config, first.act_quant_kwargs, first.kernel_preference, first.dtype)
    else:
        zeros = [weight.zero_point for weight in weights]
        args = (first.dtype, None if zeros[0] is None else torch.cat(zeros))
    return nn.Parameter(type(first)(rows, scales, first.block_size, *args), requires_grad=False)


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


def _computes_whole(module: Any) -> bool:
    """Whether kernels may replace this layer: its q, k and v are one matrix, and its experts, if any, are computed by
    kernels too."""
    if getattr(module, "block_sparse_moe", None) is not None:  # Granite's experts, beside a shared MLP
        return False
    attention, experts = getattr(module, "self_attn", None), getattr(getattr(module, "mlp", None), "experts", None)
    first = getattr(attention, "q_proj", None) or getattr(attention, "q_a_proj", None)
    joined = attention is None or hasattr(attention, "qkv_proj") or type(first) is Fused
    return joined and (experts is None or experts.config._experts_implementation == TRITON)
