"""Fused projections give the same text in as many bytes; weights that cannot be concatenated are refused."""

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import nn

from tests.support.tiny_models import CONFIGS, build
from tokendyno.backend.errors import InputError
from tokendyno.backend.worker.patch.projections import FOLDED, Fused, Slice, fuse, joinable

GROUPS = {"llama": 8, "qwen3": 8, "mistral": 8, "olmo3": 8, "gemma3_text": 8, "gpt_oss": 4, "gpt2": 0}


def parameter_bytes(model: nn.Module) -> int:
    return sum(p.nbytes for p in model.parameters())


@pytest.mark.parametrize("architecture", CONFIGS)
def test_bytes_stay_the_same(architecture: str) -> None:
    """So does the text: tests/numerics."""
    model = build(architecture)
    before, numbers = parameter_bytes(model), len(list(model.parameters()))
    assert fuse(model) == GROUPS[architecture]
    assert parameter_bytes(model) == before
    assert (len(list(model.parameters())) < numbers) is (GROUPS[architecture] > 0)


def test_weights_that_were_joined_are_freed_at_once() -> None:
    """Also those of layers that refer to themselves, as quantized ones do."""
    model = build("llama")
    parts = [module for name, module in model.named_modules() if name.endswith(("q_proj", "v_proj", "up_proj"))]
    for part in parts:
        part.itself = part
    weights = [weakref.ref(part.weight) for part in parts]
    gc.disable()
    try:
        del parts, part
        fuse(model)
        assert not any(weight() is not None for weight in weights)
    finally:
        gc.enable()


def test_biases_are_joined_too() -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(LlamaConfig(**CONFIGS["llama"], attention_bias=True, mlp_bias=True)).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    ids = torch.tensor([[3, 4, 5]])
    expected = model(ids).logits
    assert fuse(model) == 8
    assert torch.allclose(model(ids).logits, expected, atol=1e-5)


def multipliers(layer: Any) -> set[float]:
    attention, mamba, mlp = layer.self_attn, layer.mamba, layer.feed_forward
    first = layer.attention_in_multiplier, layer.attn_out_multiplier, layer.ssm_out_multiplier, mamba.ssm_in_multiplier
    more = attention.key_multiplier, mlp.gate_multiplier, mlp.down_multiplier, *mamba.mup_vector.flatten().tolist()
    return {*first, *more}


def test_multipliers_of_dense_rows_become_part_of_them() -> None:
    """That the text stays the same: tests/numerics. Of 8-bit rows they stay where they are."""
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    dense, packed = build("falcon_h1"), build("falcon_h1")
    quantize_(packed, Int8WeightOnlyConfig(set_inductor_config=False))
    ids = torch.tensor([[3, 4, 5]])
    for model, stay in ((dense, False), (packed, True)):
        before, expected = [multipliers(layer) for layer in model.model.layers], model(ids).logits
        assert fuse(model) == 8 and all(len(numbers) > 5 for numbers in before)
        after = [multipliers(layer) for layer in model.model.layers]
        assert after == (before if stay else [{1.0}] * 4)
        assert all(hasattr(layer, FOLDED) is not stay for layer in model.model.layers)
        torch.testing.assert_close(model(ids).logits, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("state", "heads", "whole"), [(16, 8, True), (24, 8, False), (16, 5, False), (256, 2, True), (512, 2, False)]
)
def test_layers_are_offered_where_kernels_hold_the_state_of_a_head(state: int, heads: int, whole: bool) -> None:
    """A head has 16 numbers where there are 8, 64 where there are 2, and 25 where there are 5."""
    from transformers import NemotronHConfig, NemotronHForCausalLM

    sizes = {"hidden_size": 32, "vocab_size": 97, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
    sizes |= {"intermediate_size": 48, "mamba_num_heads": heads, "mamba_head_dim": 128 // heads, "n_groups": 1}
    kinds = ["linear_attention", "full_attention", "mlp"]
    model = NemotronHForCausalLM(NemotronHConfig(**sizes, ssm_state_size=state, layer_types=kinds))
    assert fuse(model) == 1
    offered = [type(layer).kernel_condition(layer) for layer in model.model.layers]
    assert offered == [whole, True, True]


def test_an_encoder_is_fused_as_well() -> None:
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    model = BertModel(config).eval()
    ids = torch.tensor([[3, 4, 5]])
    expected = model(ids).last_hidden_state
    assert fuse(model) == 2
    assert torch.allclose(model(ids).last_hidden_state, expected, atol=1e-6)


@pytest.mark.parametrize(("number", "bias"), [("Int8", False), ("Int8", True), ("Float8", True)])
def test_8_bit_rows_of_torchao_are_joined_with_their_scales(number: str, bias: bool) -> None:
    from torchao import quantization

    config = getattr(quantization, f"{number}WeightOnlyConfig")
    parts = [nn.Linear(64, rows, bias=bias) for rows in (32, 16)]
    for part in parts:
        quantization.quantize_(nn.Sequential(part), config(set_inductor_config=False))
        assert joinable(part.weight)
    fused, x = Fused(parts), torch.randn(1, 64)
    assert torch.equal(fused(x), parts[0](x))
    assert torch.equal(Slice(fused.later)(x), parts[1](x))


def four_bits(rows: int, columns: int) -> Any:
    """Random ones as torchao packs them, which it does on a GPU only."""
    from torchao.quantization import Int4TilePackedTo4dTensor

    tiles = torch.randint(-(2**31), 2**31, (-(-rows // 8), columns // 128, 32, 4), dtype=torch.int32)
    scales = torch.randn(columns // 128, tiles.shape[0] * 8, 2, dtype=torch.bfloat16)
    return Int4TilePackedTo4dTensor(tiles, scales, [1, 128], torch.Size((rows, columns)))


def dense(weight: Any) -> Any:
    """(rows, columns) of 4 bits in tiles of 8 rows: lane t of 32 has row t // 4, and in bits 4 * p of its word i column
    32 * i + 8 * (p % 4) + 2 * (t % 4) + p // 4 of a group of 128."""
    rows, columns = weight.shape
    bits = weight.qdata[..., None] >> (4 * torch.arange(8)) & 15
    bits = bits.view(rows // 8, columns // 128, 8, 4, 4, 2, 4)  # tile, group, row, quarter, word, p // 4, p % 4
    bits = bits.permute(0, 2, 1, 4, 6, 3, 5).reshape(rows, columns // 128, 128).float()
    scale, zero = weight.scale_and_zero.float().permute(2, 1, 0)[..., None]
    return ((bits - 8) * scale + zero).view(rows, columns)


def linear(weight: Any) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    layer.weight = nn.Parameter(weight, requires_grad=False)
    return layer


def test_tiles_of_4_bits_of_torchao_are_joined_with_their_scales() -> None:
    parts = [linear(four_bits(rows, 2048)) for rows in (24, 8, 16)]
    whole = Fused(parts).whole.weight
    assert whole.shape == (48, 2048)
    assert torch.equal(dense(whole), torch.cat([dense(part.weight) for part in parts]))


def test_padded_tiles_are_not_joined() -> None:
    assert joinable(linear(four_bits(16, 1024)).weight)
    assert not joinable(linear(four_bits(12, 1024)).weight)


def test_other_quantized_weights_are_refused() -> None:
    from bitsandbytes.nn import Linear4bit

    model = build("llama")
    model.model.layers[0].self_attn.k_proj = Linear4bit(32, 16, bias=False)
    with pytest.raises(InputError, match="projections=separate"):
        fuse(model)
