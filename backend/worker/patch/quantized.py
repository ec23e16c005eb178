"""bitsandbytes' 4-bit weights, joined by rows and laid out as our kernels read them; and corrections of transformers'
8-bit cache and of optimum-quanto's unpacking."""

import copy
from typing import Any

import torch
from torch import nn
from transformers.cache_utils import Fp8QuantizedLayer


class Joined4bit(nn.Module):  # type: ignore[misc]
    """Several `Linear4bit` of one input as one, in as much memory. `weight.quant_state` is that of all rows; with
    double quantization its `offset` is (out_features,), which only `forward` and our kernels understand."""

    def __init__(self, parts: list[Any]) -> None:
        from bitsandbytes.nn import Params4bit

        super().__init__()
        self.in_features, self.out_features = parts[0].in_features, sum(part.out_features for part in parts)
        self.compute_dtype = parts[0].compute_dtype
        states = [part.weight.quant_state for part in parts]
        state = copy.copy(states[0])  # of all parts' rows
        state.absmax = torch.cat([one.absmax for one in states])
        state.shape = torch.Size((self.out_features, state.shape[1]))
        if state.nested:
            state.state2 = copy.copy(state.state2)
            state.state2.absmax = torch.cat([one.state2.absmax for one in states])
            state.offset = torch.cat([one.offset.expand(one.shape[0]) for one in states])
        self.weight = Params4bit(
            torch.cat([part.weight.data for part in parts]),
            requires_grad=False,
            quant_state=state,
            blocksize=state.blocksize,
            compress_statistics=state.nested,
            quant_type=state.quant_type,
            quant_storage=parts[0].weight.quant_storage,
            bnb_quantized=True,
        )
        bias = None if parts[0].bias is None else torch.cat([part.bias.data for part in parts])
        self.bias = None if bias is None else nn.Parameter(bias, requires_grad=False)

    def forward(self, x: Any) -> Any:
        """(..., in_features) -> (..., out_features), by bitsandbytes."""
        from bitsandbytes import matmul_4bit

        cast = x if self.compute_dtype is None else x.to(self.compute_dtype)
        bias = None if self.bias is None else self.bias.to(cast.dtype)
        return matmul_4bit(cast, self.weight, _with_float32_scales(self.weight.quant_state), bias=bias).to(x.dtype)


def joinable_4bit(parts: list[Any]) -> bool:
    """Whether these are 4-bit layers quantized alike, and no block spans two of them or two rows."""
    states: list[Any] = [getattr(getattr(part, "weight", None), "quant_state", None) for part in parts]
    if any(type(part).__name__ != "Linear4bit" for part in parts) or None in states:
        return False
    first = states[0]
    alike = len({(state.quant_type, state.blocksize, state.dtype, state.nested) for state in states}) == 1
    whole = all(state.shape[1] == first.shape[1] and state.shape[1] % state.blocksize == 0 for state in states)
    if alike and first.nested:
        whole = whole and all(state.absmax.numel() % state.state2.blocksize == 0 for state in states)
    return alike and whole


def _with_float32_scales(state: Any) -> Any:
    """The state with dequantized scales: bitsandbytes itself takes only one offset for a weight."""
    from bitsandbytes.functional import dequantize_blockwise

    if not state.nested:
        return state
    scales = dequantize_blockwise(state.absmax, state.state2).view(state.shape[0], -1) + state.offset[:, None]
    plain = copy.copy(state)
    plain.absmax, plain.offset, plain.state2, plain.nested = scales.view(-1), None, None, False
    return plain


def lay_together(state: Any) -> None:
    """Move the code table, the scales and, with double quantization, the scales' own table, offset and scales into one
    tensor, which kernels read (presets/kernels/matvec/build/torch-cuda/nibbles.py), and leave views of it."""
    second = state.state2 if state.nested else None
    places = [(state, "code"), (second, "code"), (state, "offset"), (second, "absmax"), (state, "absmax")]
    places = [(holder, name) for holder, name in places if holder is not None and getattr(holder, name) is not None]
    tensors = [getattr(holder, name) for holder, name in places]
    sizes = [tensor.nbytes + -tensor.nbytes % 16 for tensor in tensors]  # libraries read 16 bytes at once
    memory = torch.zeros(sum(sizes), dtype=torch.uint8, device=tensors[0].device)
    for (holder, name), tensor, room in zip(places, tensors, memory.split(sizes), strict=True):
        view = room[: tensor.nbytes].view(tensor.dtype).view(tensor.shape)
        setattr(holder, name, view.copy_(tensor))


# --- number formats of caches and of quanto ------------------------------------------------------


def saturate_fp8_cache() -> None:
    """Let the 8-bit cache replace numbers beyond its range by the largest that it has: transformers takes the scale of
    a layer from the prompt, and torch 2.11 converts larger keys and values of later tokens to NaN."""
    if getattr(Fp8QuantizedLayer, "saturates", False):
        return
    quantize_unclamped = Fp8QuantizedLayer._quantize

    def quantize(self: Any, tensor: torch.Tensor, scale: torch.Tensor | None = None) -> Any:
        """(codes of shape `tensor.shape`, scale of shape ()); scale None: taken from `tensor`."""
        if scale is not None:
            tensor = torch.clamp(tensor.float(), -scale * self.fp8_max, scale * self.fp8_max)
        return quantize_unclamped(self, tensor, scale)

    Fp8QuantizedLayer._quantize, Fp8QuantizedLayer.saturates = quantize, True


def unpack_with_torch() -> None:
    """Let optimum-quanto unpack its tensors with torch's operators: its own extension is compiled on first use, which
    takes minutes on a GPU. The low bits of a byte belong to the first rows, the bits above to those that follow."""
    from optimum.quanto.tensor.packed import PackedTensor

    def unpack(packed: Any) -> torch.Tensor:
        bits, codes = packed._bits, packed._data
        rows = torch.cat([(codes >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)])
        return rows[: packed.shape[0]]

    PackedTensor.unpack = unpack
