"""Bytes and parameters of what a model holds, counted on tensors of every kind."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tokendyno.backend.optimizations.tensor_bytes import (
    bnb_scales,
    bytes_on,
    cache_tensors,
    keeps_tokens,
    layer_bytes,
    named_weight_tensors,
    parameter_count,
    total_bytes,
    triton_weights,
    weight_tensors,
)


def tensor(device: str, index: int | None, nbytes: int) -> Any:
    return SimpleNamespace(device=SimpleNamespace(type=device, index=index), nbytes=nbytes)


@pytest.mark.parametrize(("index", "expected"), [(0, 5), (1, 10), (2, 0)])
def test_bytes_are_of_one_gpu(index: int, expected: int) -> None:
    held = [
        tensor("cuda", 0, 5),
        tensor("cuda", 1, 7),
        tensor("cuda", 1, 3),
        tensor("cpu", None, 99),
        tensor("xpu", 0, 9),
    ]
    assert bytes_on(held, index) == expected


def frozen(*shape: int, dtype: torch.dtype = torch.uint8) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.zeros(*shape, dtype=dtype), requires_grad=False)


def test_parameters_are_counted_however_few_bytes_hold_them() -> None:
    """Beside a plain layer: 4-bit weights, two in a byte, and MXFP4's, whose scales are no parameters of the model."""
    model = torch.nn.Module()
    model.plain = torch.nn.Linear(4, 3)
    model.four = torch.nn.Module()
    model.four.weight = frozen(10)
    model.four.weight.quant_state = SimpleNamespace(shape=torch.Size([4, 5]))
    model.experts = torch.nn.Module()
    model.experts.register_parameter("up_blocks", frozen(2, 16))
    model.experts.register_parameter("up_scales", frozen(2, 1))
    assert list(triton_weights(model.experts)) == ["up"]
    assert parameter_count(model) == 15 + 20 + 64


class QuantState:
    """As bitsandbytes names its own."""

    def __init__(self, **parts: Any) -> None:
        vars(self).update(parts)


def test_scales_of_bitsandbytes_are_found_on_both_levels() -> None:
    second = QuantState(absmax=torch.zeros(2), code=torch.zeros(256), blocksize=256)
    first = QuantState(
        absmax=torch.zeros(8, dtype=torch.uint8), code=torch.zeros(16), offset=torch.zeros(1), state2=second
    )
    holder = SimpleNamespace(quant_state=first, SCB=torch.zeros(3), CB=None)
    assert sorted(scale.numel() for scale in bnb_scales(holder)) == [1, 2, 3, 8, 16, 256]
    assert bnb_scales(SimpleNamespace()) == [] == bnb_scales(None)


def test_weights_that_share_memory_come_once_and_empty_ones_never() -> None:
    model = torch.nn.Module()
    model.embedding = torch.nn.Embedding(4, 3)
    model.head = torch.nn.Linear(3, 4, bias=False)
    model.head.weight = model.embedding.weight
    model.register_buffer("steps", torch.zeros(5))
    model.register_buffer("none", None)
    model.register_buffer("empty", torch.zeros(0))
    assert [(name, tensor.numel()) for name, tensor in named_weight_tensors(model)] == [
        ("steps", 5),
        ("embedding.weight", 12),
    ]
    assert total_bytes(weight_tensors(model)) == (5 + 12) * 4


def test_all_that_a_layer_of_a_cache_keeps_is_counted_and_nothing_beside_it() -> None:
    number = torch.zeros(3)
    plain = SimpleNamespace(keys=torch.zeros(2), values=torch.zeros(2), conv_states={0: number}, recurrent_states=None)
    assert layer_bytes(plain) == 28
    state = SimpleNamespace(conv_states=number, recurrent_states=(number, [torch.zeros(1)]))
    assert (layer_bytes(state), keeps_tokens(state), keeps_tokens(plain)) == (28, False, True)
    packed = SimpleNamespace(
        keys=torch.zeros(1),
        values=torch.zeros(1),
        _quantized_keys=(number, {"scale": torch.zeros(2)}),
        _quantized_values=None,
        copy=torch.zeros(5),
        again=number,
    )
    assert layer_bytes(packed) == 28
    empty = SimpleNamespace(keys=None, values=None)
    assert (layer_bytes(empty), list(cache_tensors(SimpleNamespace(layers=[empty])))) == (0, [])
    assert sum(one.numel() for one in cache_tensors(SimpleNamespace(layers=[plain, state, packed]))) == 7 + 7 + 7
