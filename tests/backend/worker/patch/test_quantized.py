"""bitsandbytes' 4-bit weights joined: the same numbers in as many bytes, or refused; scales that lie in one place."""

from typing import Any

import pytest
import torch
from bitsandbytes.functional import dequantize_4bit
from bitsandbytes.nn import Linear4bit, Params4bit

from tests.support.quantization import llama
from tokendyno.backend.worker.patch.projections import fuse
from tokendyno.backend.worker.patch.quantized import Joined4bit, joinable_4bit, lay_together

KINDS = [("nf4", False), ("nf4", True), ("fp4", False), ("fp4", True)]


def layer(rows: int, columns: int, kind: str = "nf4", double: bool = False, bias: bool = False, **more: Any) -> Any:
    linear = Linear4bit(
        columns, rows, bias=bias, compute_dtype=torch.bfloat16, compress_statistics=double, quant_type=kind
    )
    weight = torch.randn(rows, columns, dtype=torch.bfloat16)
    linear.weight = Params4bit(weight, requires_grad=False, compress_statistics=double, quant_type=kind, **more)
    linear.support_avx512bf16_for_cpu = False  # it would rearrange the weight in its first step
    return linear.to("cpu").to(torch.bfloat16)


def numbers(part: Any) -> Any:
    return dequantize_4bit(part.weight.data, part.weight.quant_state)


def nbytes(state: Any) -> int:
    scales = [state.absmax, *([state.state2.absmax] if state.nested else [])]
    return sum(tensor.nbytes for tensor in scales)


@pytest.mark.parametrize(("kind", "double"), KINDS)
def test_rows_are_joined_as_they_are(kind: str, double: bool) -> None:
    """Products with unit vectors give every weight; each part's scales have an offset of their own."""
    parts = [layer(rows, 256, kind, double, bias=True) for rows in (128, 64, 64)]
    expected = torch.cat([numbers(part) for part in parts])
    bias = torch.cat([part.bias for part in parts])
    assert joinable_4bit(parts)
    whole: Any = Joined4bit(parts)
    assert (whole.out_features, whole.in_features) == tuple(whole.weight.quant_state.shape) == (256, 256)
    assert whole.weight.nbytes == sum(part.weight.nbytes for part in parts)
    assert nbytes(whole.weight.quant_state) == sum(nbytes(part.weight.quant_state) for part in parts)
    unit = torch.eye(256, dtype=torch.bfloat16)
    whole.bias.data.zero_()
    assert torch.equal(whole(unit).T, expected)
    x = torch.randn(2, 3, 256, dtype=torch.bfloat16)
    whole.bias.data.copy_(bias)
    assert torch.allclose(whole(x), torch.cat([part(x) for part in parts], -1), rtol=1e-2)


@pytest.mark.parametrize(
    ("parts", "joined"),
    [
        ([layer(64, 256), layer(16, 256)], True),
        ([layer(64, 256), layer(64, 256, "fp4")], False),
        ([layer(64, 256), layer(64, 256, double=True)], False),
        ([layer(64, 256, double=True), layer(64, 256, double=True)], True),
        ([layer(64, 256, double=True), layer(16, 256, double=True)], False),  # scales that share one, of two matrices
        ([layer(64, 96), layer(64, 96)], False),  # weights that share a scale, of two rows
        ([layer(64, 256), layer(64, 256, blocksize=128)], False),
        ([layer(64, 256), torch.nn.Linear(256, 64)], False),
        ([Linear4bit(256, 64), Linear4bit(256, 64)], False),  # not quantized yet
    ],
)
def test_only_whole_blocks_of_one_kind_are_joined(parts: list[Any], joined: bool) -> None:
    assert joinable_4bit(parts) is joined


@pytest.mark.parametrize(("kind", "double"), KINDS)
def test_scales_lie_one_after_the_other_and_are_the_same(kind: str, double: bool) -> None:
    part = layer(64, 320, kind, double)
    before, state = numbers(part).clone(), part.weight.quant_state
    lay_together(state)
    assert torch.equal(numbers(part), before)
    begin = address = state.code.data_ptr()
    second = (state.state2.code, state.offset, state.state2.absmax) if double else ()
    for tensor in (state.code, *second, state.absmax):
        assert tensor.data_ptr() == address
        address += -(-tensor.nbytes // 16) * 16
    assert state.code.untyped_storage().nbytes() == address - begin


def packed(double: bool, **shape: int) -> Any:
    """A small model whose linear layers bitsandbytes has quantized."""
    model, _ = llama(**shape)
    for name, module in list(model.model.named_modules()):
        if type(module) is torch.nn.Linear:
            linear = layer(module.out_features, module.in_features, double=double)
            linear.weight = Params4bit(
                module.weight.data, requires_grad=False, compress_statistics=double, quant_type="nf4"
            )
            model.model.set_submodule(name, linear.to("cpu"))
    return model.eval()


@pytest.mark.parametrize("double", [False, True])
def test_a_fused_model_computes_what_the_separate_one_does(double: bool) -> None:
    shape = {"hidden_size": 128, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 4}
    model, ids = packed(double, **shape), torch.tensor([[5, 6, 7, 8]])
    with torch.inference_mode():
        expected = model(ids).logits
        assert fuse(model) == 2
        assert type(model.model.layers[0].self_attn.q_proj.whole) is Joined4bit
        assert torch.allclose(model(ids).logits, expected, rtol=2e-2, atol=2e-2)
