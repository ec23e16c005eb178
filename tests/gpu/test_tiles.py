"""The kernel for torchao's 4-bit tiles computes what PyTorch's does, with any fused operations."""

from typing import Any

import pytest

from tests.gpu.test_matvec import replaced, with_kernels
from tests.gpu.test_nibbles import assert_text_by
from tests.support.fused_products import product_error
from tests.support.whole_layers import SHAPE

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]

WIDE = SHAPE | {"hidden_size": 1024, "intermediate_size": 1024, "head_dim": 128, "num_hidden_layers": 2}
CUTS = [
    {"num_warps": 8, "CTAS": 1 << 30, "DEPTH": 1},
    {"num_warps": 1, "CTAS": 3, "DEPTH": 4},
    {"num_warps": 16, "CTAS": 2, "DEPTH": 2},
    {"num_warps": 2, "CTAS": 5, "DEPTH": 8},
]


def packed(rows: int, columns: int) -> tuple[Any, Any, Any]:
    """Random tiles, their scales, and (rows, columns) bfloat16 as PyTorch reads them.

    Scales and zeros are small multiples of one power of two, so that every weight is a bfloat16 number and exact.
    """
    import torch

    numbers = torch.randint(0, 256, (rows, columns // 2), dtype=torch.uint8, device="cuda")
    tiles = torch.ops.aten._convert_weight_to_int4pack(numbers, 8)
    units = torch.randint(1, 16, (columns // 128, rows), device="cuda")
    zeros = torch.randint(-60, 61, (columns // 128, rows), device="cuda")
    scales = torch.stack([units, zeros], -1).bfloat16() / 1024
    one = torch.eye(columns, dtype=torch.bfloat16, device="cuda")
    return tiles, scales, torch.ops.aten._weight_int4pack_mm(one, tiles, 128, scales).T.contiguous()


@pytest.mark.parametrize(
    ("rows", "columns"), [(6144, 4096), (4096, 14336), (4096, 1024), (6144, 1024), (80, 1024), (96, 384), (48, 18432)]
)
def test_a_product_is_that_of_double_precision(kernels: Any, rows: int, columns: int) -> None:
    import torch

    torch.manual_seed(rows)
    tiles, scales, plain = packed(rows, columns)
    for dtype in (torch.bfloat16, torch.float16):
        for ride in ("", "n", "r", "nb", "br", "ng", "nbrg"):
            found = product_error(kernels.tiles.product, tiles, scales, plain, ride, dtype)
            assert found < 1e-2, (dtype, ride, found)


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.usefixtures("early")
def test_a_product_is_the_same_however_it_is_cut(kernels: Any, how: dict[str, int]) -> None:
    import torch

    tiles, scales, plain = packed(144, 1024)
    for ride in ("", "nbr", "nbrg"):
        found = product_error(kernels.tiles.product, tiles, scales, plain, ride, torch.bfloat16, tuned=how)
        assert found < 1e-2, ride


def test_what_was_filled_up_or_grouped_otherwise_is_left_to_torchao(kernels: Any) -> None:
    import torch
    from torchao.quantization import Int4WeightOnlyConfig, quantize_

    for rows, columns, group, ours in (
        (64, 1024, 128, True),
        (64, 512, 128, False),
        (60, 1024, 128, False),
        (64, 1024, 64, False),
    ):
        layer = torch.nn.Sequential(torch.nn.Linear(columns, rows, bias=False, dtype=torch.bfloat16, device="cuda"))
        quantize_(
            layer,
            Int4WeightOnlyConfig(group_size=group, int4_packing_format="tile_packed_to_4d", set_inductor_config=False),
        )
        assert (kernels.layers.ops.matrix(layer[0].weight) is not None) is ours, (rows, columns, group)


@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
def test_a_fused_model_says_what_it_says_through_torchao(architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Captured; each token is also torchao's most likely one, or as likely within the rounding of bfloat16."""
    import torch
    from torchao.quantization import Int4WeightOnlyConfig, quantize_
    from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig

    def made() -> Any:
        torch.manual_seed(0)
        config = AutoConfig.for_model(architecture, **WIDE)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).cuda().eval()
        model.generation_config = GenerationConfig(pad_token_id=0)
        quantize_(
            model.model,
            Int4WeightOnlyConfig(group_size=128, int4_packing_format="tile_packed_to_4d", set_inductor_config=False),
        )
        return model

    plain, model = made(), with_kernels(made())
    assert {"llama": "LlamaDecoderLayer", "qwen3": "Qwen3DecoderLayer"}[architecture] in replaced(model)
    assert_text_by("tiles", model, plain, monkeypatch)
