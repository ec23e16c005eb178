"""Bytes and parameters of what a model holds, counted on tensors of every kind."""

from types import SimpleNamespace

import pytest
import torch

from tokendyno.backend.worker.prove.tensor_bytes import (
    bytes_on,
    total_bytes,
    weight_tensors,
)


@pytest.mark.parametrize(("device", "expected"), [("cuda:0", 5), ("cuda:1", 10), ("cuda:2", 0), ("cpu", 99)])
def test_bytes_are_of_one_device(device: str, expected: int) -> None:
    sizes = [("cuda:0", 5), ("cuda:1", 7), ("cuda:1", 3), ("cpu", 99), ("xpu:0", 9)]
    held = [SimpleNamespace(device=torch.device(name), nbytes=nbytes) for name, nbytes in sizes]
    assert bytes_on(device, held) == expected


def frozen(*shape: int, dtype: torch.dtype = torch.uint8) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.zeros(*shape, dtype=dtype), requires_grad=False)


def test_weights_that_share_memory_come_once_and_empty_ones_never() -> None:
    model = torch.nn.Module()
    model.embedding = torch.nn.Embedding(4, 3)
    model.head = torch.nn.Linear(3, 4, bias=False)
    model.head.weight = model.embedding.weight
    model.register_buffer("steps", torch.zeros(5))
    model.register_buffer("none", None)
    model.register_buffer("empty", torch.zeros(0))
    assert [tensor.numel() for tensor in weight_tensors(model)] == [5, 12]
    assert total_bytes(weight_tensors(model)) == (5 + 12) * 4
