"""Whether a layer of the cache holds tokens in memory of its own, and attention gets what it holds."""

import copy
import functools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from backend.optimizations.tensor_bytes import extra_parts, inner_tensors, keeps_tokens, quantized_parts


def borrowing(layers: Sequence[Any]) -> set[int]:
    """Places of the layers whose tensors lie where another layer's do, or show the same memory more than once: their
    bytes are counted, and are not there."""
    own = [list(inner_tensors([_plain(layer), extra_parts(layer), quantized_parts(layer)])) for layer in layers]
    held = [[tensor for tensor in tensors if tensor.numel() and tensor.data_ptr()] for tensors in own]
    lenders = Counter(address for tensors in held for address in {tensor.data_ptr() for tensor in tensors})
    return {
        i
        for i, tensors in enumerate(held)
        if any(lenders[tensor.data_ptr()] > 1 or _repeats(tensor) for tensor in tensors)
    }


def hands_out_what_it_holds(layer: Any) -> bool:
    """Whether keys and values that a layer gives to attention are as many as it holds, the same to the bit if they are
    not packed, and change with these in the first and the last text, whose bytes are overwritten for a moment. A copy
    of the layer is asked, which adds a token and keeps that, or in fixed memory writes the newest once more.

    True where nothing can be told: a window in fixed memory is shifted, what is rounded there takes other bytes each
    time, and an offloaded layer is fetched by its cache.
    """
    parts = quantized_parts(layer) or _plain(layer)
    if len(parts) != 2 or not hasattr(layer, "is_initialized"):
        return True
    if hasattr(layer, "max_cache_len"):
        return _hands_out_in_place(layer, parts)
    shapes, device = [_shape(part) for part in parts], next(inner_tensors(parts[0])).device
    if any(len(shape) != 4 for shape in shapes) or device != getattr(layer, "device", device):
        return True
    import torch

    news = [torch.zeros(*shape[:2], 1, shape[3], dtype=layer.dtype, device=device) for shape in shapes]
    tokens = 1 + (int(layer.get_seq_length()) if quantized_parts(layer) else shapes[0][2])

    def given(place: int) -> Any:
        return copy.copy(layer).update(*news)[place]

    try:
        with torch.inference_mode():
            same = quantized_parts(layer) or all(_equal(given(i)[..., :-1, :], part) for i, part in enumerate(parts))
            return bool(same) and all(
                _follows(functools.partial(given, i), part, tokens) for i, part in enumerate(parts)
            )
    except torch.OutOfMemoryError:
        return True


def _hands_out_in_place(layer: Any, parts: Sequence[Any]) -> bool:
    """Of a layer in fixed memory that holds all tokens."""
    import torch

    written = getattr(layer, "cumulative_length", None)
    if not isinstance(written, torch.Tensor) or hasattr(layer, "key_scales") or getattr(layer, "is_sliding", False):
        return True
    if parts[0].device != getattr(layer, "device", None):
        return True
    last = int(written) - 1
    if not 0 <= last < parts[0].shape[-2]:
        return True
    newest = [part[..., last : last + 1, :].clone() for part in parts]

    def given(place: int) -> Any:
        again = copy.copy(layer)
        again.cumulative_length = torch.full_like(written, last)
        return again.update(*newest)[place]

    try:
        with torch.inference_mode():
            return all(
                _follows(functools.partial(given, i), part, part.shape[-2]) and _equal(given(i), part)
                for i, part in enumerate(parts)
            )
    except torch.OutOfMemoryError:
        return True


def _follows(given: Callable[[], Any], part: Any, tokens: int) -> bool:
    """Whether what is given has so many tokens, and changes with the first and the last text of this part, and there;
    with the first or the last row of the largest tensor where it is packed: what padding wrote may stand for zeros."""
    before = given().contiguous()
    if before.shape[-2] != tokens:
        return False
    largest = max(inner_tensors(part), key=lambda tensor: int(tensor.nbytes))
    if largest is not part:
        return any(not _equal(before, _changed(given, largest, row)) for row in {0, len(largest) - 1})
    if before.shape[0] != part.shape[0]:
        return False
    return all(not _equal(before[i], _changed(given, part, i)[i]) for i in {0, len(part) - 1})


def _changed(given: Callable[[], Any], held: Any, row: int) -> Any:
    """What is given while the bytes of a row of this tensor are others."""
    import torch

    place = held[row : row + 1].view(torch.uint8)
    kept = place.clone()
    try:
        place.bitwise_not_()
        return given().clone()
    finally:
        place.copy_(kept)


def _equal(one: Any, other: Any) -> bool:
    """To the bit: some numbers do not equal themselves."""
    import torch

    one, other = one.contiguous(), other.contiguous()
    return one.dtype == other.dtype and bool(torch.equal(one.view(torch.uint8), other.view(torch.uint8)))


def _plain(layer: Any) -> list[Any]:
    """Keys and values of a layer that has any."""
    pair = [getattr(layer, "keys", None), getattr(layer, "values", None)] if keeps_tokens(layer) else []
    return [part for part in pair if part is not None and part.numel()]


def _repeats(tensor: Any) -> bool:
    return any(step == 0 and size > 1 for step, size in zip(tensor.stride(), tensor.shape, strict=True))


def _shape(part: Any) -> tuple[int, ...]:
    """Of keys or values (B, heads, tokens, head size): as the quantizer recorded it, or as the tensor has it."""
    if isinstance(part, tuple | list):
        recorded = [tuple(one["shape"]) for one in part if isinstance(one, dict) and "shape" in one]
        return recorded[0] if recorded else tuple(part[0].shape)
    return tuple(part.shape)
