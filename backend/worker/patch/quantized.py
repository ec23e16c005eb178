"""Quantized numbers of libraries as our kernels read them, and where a library must be corrected: bitsandbytes' 4-bit
weights joined by rows with their scales in one place; transformers' 8-bit cache; the unpacking of optimum-quanto."""

from typing import Any

import torch
from torch import nn
from transformers.cache_utils import Fp8QuantizedLayer


class Joined4bit(nn.Module):  # type: ignore[misc]
    """Several `Linear4bit` of one input as one, in the memory that they took.

    `weight.quant_state` is that of all rows. With double quantization, whose offset each part has its own, `offset` is
    (out_features,), one a row: only `forward` and our kernels read it.
    """

    def __init__(self, parts: list[Any]) -> None:
        super().__init__()
        self.in_features, self.out_features = parts[0].in_features, sum(part.out_features for part in parts)
        self.compute_dtype = parts[0].compute_dtype
        self.weight = _rows_of_all(parts)
        joined = None if parts[0].bias is None else torch.cat([part.bias.data for part in parts])
        self.bias = None if joined is None else nn.Parameter(joined, requires_grad=False)

    def forward(self, x: Any) -> Any:
        """(..., in_features) -> (..., out_features), as bitsandbytes computes it from these rows."""
        from bitsandbytes import matmul_4bit

        given = x if self.compute_dtype is None else x.to(self.compute_dtype)
        bias = None if self.bias is None else self.bias.to(given.dtype)
        return matmul_4bit(given, self.weight, _plain_scales(self.weight.quant_state), bias=bias).to(x.dtype)


def joinable_4bit(parts: list[Any]) -> bool:
    """Whether these are 4-bit layers quantized alike, and no block has numbers of two of them or of two rows."""
    states: list[Any] = [getattr(getattr(part, "weight", None), "quant_state", None) for part in parts]
    if any(type(part).__name__ != "Linear4bit" for part in parts) or None in states:
        return False
    first = states[0]
    alike = all(
        (one.quant_type, one.blocksize, one.dtype, one.nested)
        == (first.quant_type, first.blocksize, first.dtype, first.nested)
        for one in states
    )
    whole = all(one.shape[1] == first.shape[1] and one.shape[1] % one.blocksize == 0 for one in states)
    if first.nested:
        whole = whole and all(one.absmax.numel() % one.state2.blocksize == 0 for one in states)
    packed = any(getattr(one, "packing_format_for_cpu", False) for one in states)  # rearranged by a CPU's first step
    return alike and whole and not packed


def _rows_of_all(parts: list[Any]) -> Any:
    """The `Params4bit` of all rows."""
    from bitsandbytes.functional import QuantState
    from bitsandbytes.nn import Params4bit

    states = [part.weight.quant_state for part in parts]
    first = states[0]
    second, offset = None, None
    if first.nested:
        scales = [state.state2 for state in states]
        second = QuantState(
            torch.cat([scale.absmax for scale in scales]),
            code=scales[0].code,
            blocksize=scales[0].blocksize,
            dtype=scales[0].dtype,
        )
        offset = torch.cat([state.offset.expand(state.shape[0]) for state in states])
    state = QuantState(
        torch.cat([state.absmax for state in states]),
        shape=torch.Size((sum(state.shape[0] for state in states), first.shape[1])),
        code=first.code,
        blocksize=first.blocksize,
        quant_type=first.quant_type,
        dtype=first.dtype,
        offset=offset,
        state2=second,
    )
    weight = parts[0].weight
    return Params4bit(
        torch.cat([part.weight.data for part in parts]),
        requires_grad=False,
        quant_state=state,
        blocksize=state.blocksize,
        compress_statistics=state.nested,
        quant_type=state.quant_type,
        quant_storage=weight.quant_storage,
        bnb_quantized=True,
    )


def _plain_scales(state: Any) -> Any:
    """The same with its scales in float32, computed as bitsandbytes does: it knows one offset for a weight."""
    from bitsandbytes.functional import QuantState, dequantize_blockwise

    if not state.nested:
        return state
    scales = dequantize_blockwise(state.absmax, state.state2).view(state.shape[0], -1) + state.offset[:, None]
    return QuantState(
        scales.view(-1),
        shape=state.shape,
        code=state.code,
        blocksize=state.blocksize,
        quant_type=state.quant_type,
        dtype=state.dtype,
    )


def lay_together(state: Any) -> None:
    """Move the table, the scales and, of double quantization, what belongs to these into one tensor, one after the
    other, and leave views of it: a kernel is given the packed weight and one more tensor.

    In the order of presets/kernels/matvec/build/torch-cuda/nibbles.py: code, then of scales their code, offset and
    scales, then scales.
    """
    second = state.state2 if state.nested else None
    places = [(state, "code"), (second, "code"), (state, "offset"), (second, "absmax"), (state, "absmax")]
    places = [(holder, name) for holder, name in places if holder is not None and getattr(holder, name) is not None]
    tensors = [getattr(holder, name) for holder, name in places]
    room = torch.zeros(sum(_aligned(one.nbytes) for one in tensors), dtype=torch.uint8, device=tensors[0].device)
    begin = 0
    for (holder, name), one in zip(places, tensors, strict=True):
        there = room[begin : begin + one.nbytes].view(one.dtype).view(one.shape)
        setattr(holder, name, there.copy_(one))
        begin += _aligned(one.nbytes)


def _aligned(size: int) -> int:
    """Each tensor begins at a multiple of 16 bytes: libraries read as many at once."""
    return size + -size % 16


# --- number formats of caches and of quanto ------------------------------------------------------


def saturate_fp8_cache() -> None:
    """Let the 8-bit cache hold the largest number that it can express for each number beyond it.

    transformers takes the scale of a layer from the prompt. Keys and values of later tokens may be larger; torch 2.11
    makes NaN of them when it converts, and so of every score after them, torch 2.13 cuts them off on a CPU.
    """
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
    """Let optimum-quanto unpack its tensors with torch's operators.

    Its own extension is compiled on first use: a minute with a C++ compiler, many minutes with nvcc on a GPU, which
    also builds kernels that a cache never calls. On a CPU that extension calls the same operators. The low bits of a
    byte belong to the first rows, the bits above to the rows that follow.
    """
    from optimum.quanto.tensor.packed import PackedTensor

    def unpack(packed: Any) -> torch.Tensor:
        bits, codes = packed._bits, packed._data
        rows = torch.cat([(codes >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)])
        return rows[: packed.shape[0]]

    PackedTensor.unpack = unpack
