"""Attention of one new token to keys and values in 8 bits, run on a CPU: exact for what these stand for."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.presets.kernels.test_attention import Given, Shape, given
from tests.support.kernels_on_cpu import Kernel, kernels_on_cpu
from tokendyno.backend.worker.loop.cache import to_fp8

SHAPES = [
    Shape(2, 4, 128, 600, 550),
    Shape(2, 4, 128, 600, 17),
    Shape(2, 8, 64, 300, 2, "some"),
    Shape(1, 3, 64, 200, 128, "ring"),
    Shape(2, 15, 32, 90, 12, texts=2),
    Shape(1, 1, 128, 400, 0),
]


@pytest.fixture(scope="module")
def kernels() -> Iterator[Any]:
    with kernels_on_cpu("attention", "long", "eight_bits") as loaded:
        yield loaded


def error(kernels: Any, asked: Given, folded: bool = True, offset: float = 0.0) -> float:
    """Relative. Where nothing is filled are numbers of no meaning, and past the last token codes and scales that are no
    numbers: they are not read."""
    (keys, key_scales), (values, value_scales) = (to_fp8(3 * held) for held in (asked.keys, asked.values))
    slot = int(asked.slot)
    if not asked.filled[0, -1]:
        for codes in (keys, values):
            codes.view(torch.uint8)[:, :, slot + 1 :] = 0x7F
        for scales in (key_scales, value_scales):
            scales[:, :, slot + 1 :] = float("nan")
    before = keys.clone(), values.clone(), key_scales.clone(), value_scales.clone()
    size = keys.shape[-1]
    query, key, value = asked.states(offset)
    out = torch.full((query.numel(),), float("nan"), dtype=asked.qkv.dtype)
    turns = torch.zeros(64, dtype=torch.int32) if folded else None
    Kernel.launched.clear()
    kernels.attention.attend(
        asked.qkv,
        asked.cos,
        asked.sin,
        keys,
        values,
        asked.slot,
        asked.filled,
        out,
        size**-0.5,
        asked.q_norm,
        asked.k_norm,
        1e-6,
        turns=turns,
        sinks=asked.sinks,
        offset=offset,
        key_scales=key_scales,
        value_scales=value_scales,
    )
    assert Kernel.launched[0] == "tokendyno_attention_rounded"
    for codes, scales, states, old, old_scales in zip(
        (keys, values), (key_scales, value_scales), (key, value), before[:2], before[2:], strict=True
    ):
        wanted, of_wanted = to_fp8(states.float())
        assert torch.allclose(scales[:, :, slot], of_wanted, rtol=1e-5)
        assert (codes[:, :, slot].float() != wanted.float()).float().mean() < 0.01  # sums were rounded otherwise
        old.view(torch.uint8)[:, :, slot] = codes.view(torch.uint8)[:, :, slot]
        old_scales[:, :, slot] = scales[:, :, slot]
        assert torch.equal(codes.view(torch.uint8), old.view(torch.uint8))
        assert torch.equal(scales.view(torch.int32), old_scales.view(torch.int32))
    stood = ((keys, key_scales), (values, value_scales))
    expected = asked.mixed(
        query, *((codes.double() * scales.double()[..., None]).nan_to_num() for codes, scales in stood)
    )
    return float((out.double() - expected.reshape(-1)).norm() / expected.norm())


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_it_is_that_of_double_precision_to_what_they_stand_for(
    kernels: Any, shape: Shape, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels.eight_bits, "BLOCK", 32)
    monkeypatch.setattr(kernels.eight_bits, "MOST_PROGRAMS", 4)
    limit = {"bfloat16": 3e-3, "float16": 1e-3}[dtype]
    for angles, normed, folded in (("whole", True, True), ("halves", False, False), ("none", False, True)):
        assert error(kernels, given(shape, getattr(torch, dtype), angles, normed), folded) < limit, angles
    assert error(kernels, given(shape, getattr(torch, dtype)), offset=1.0) < limit
