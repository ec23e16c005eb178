"""Bytes and parameters of what a model holds, counted on tensors of every kind."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from backend.optimizations.tensor_bytes import bytes_by_device, bytes_on, parameter_count, triton_weights


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


def test_a_cache_is_counted_where_it_lies() -> None:
    layer = SimpleNamespace(keys=torch.zeros(2, 3), values=torch.zeros(2, 3), is_initialized=True)
    assert bytes_by_device(SimpleNamespace(layers=[layer, layer])) == {"cpu": 2 * 2 * 6 * 4}


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
