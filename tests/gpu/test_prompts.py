"""What is between the products of many tokens is what the model's own code computes, and is left to it elsewhere."""

from typing import Any

import pytest
import torch

from tests.gpu.test_matvec import build, with_kernels
from tests.support.whole_layers import MODELS

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]

DENSE = sorted(MODELS.keys() - {"gpt_oss"})


def near(made: Any, exact: Any, dtype: Any) -> None:
    assert (made.double() - exact.double()).norm() <= 2 * torch.finfo(dtype).eps * exact.double().norm()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", [16, 24, 80, 128, 256])
@pytest.mark.parametrize("halves", [1, 2], ids=["one angle for both halves", "an angle for each"])
@pytest.mark.parametrize("dim", [1, 2], ids=["heads first", "tokens first"])
def test_queries_and_keys_are_rotated(kernels: Any, dim: int, halves: int, size: int, dtype: Any) -> None:
    """Slices of one product, of two texts with the same angles or with their own."""
    from transformers.models.gpt_oss.modeling_gpt_oss import apply_rotary_pos_emb as by_halves
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    torch.manual_seed(size)
    function = by_halves if halves == 1 else apply_rotary_pos_emb
    rows = torch.randn(2, 300, 17 * size, device="cuda", dtype=dtype)
    q, k, _ = (part.unflatten(-1, (-1, size)) for part in rows.split([11 * size, 3 * size, 3 * size], -1))
    if dim == 1:
        q, k = q.transpose(1, 2), k.transpose(1, 2)
    angles = torch.randn(2, 300, size // 2, device="cuda").repeat(1, 1, halves)
    for of_texts in (angles, angles[:1]):
        cos, sin = of_texts.cos().to(dtype), of_texts.sin().to(dtype)
        assert kernels.prompts.can_rotate(function, q, k, cos, sin, dim)
        doubled = (one.double() for one in (q, k, cos, sin))
        pairs = zip(
            kernels.prompts.rotate(q, k, cos, sin, dim), type(function).forward(function, *doubled, dim), strict=True
        )
        for made, exact in pairs:
            assert halves == 1 or made.stride() == exact.stride()
            near(made, exact, dtype)


def test_a_function_that_rotates_the_other_way_keeps_doing_so(kernels: Any) -> None:
    from transformers.models.nanochat.modeling_nanochat import apply_rotary_pos_emb

    q, angles = torch.randn(1, 4, 9, 32, device="cuda"), torch.randn(1, 9, 32, device="cuda")
    assert not kernels.prompts.can_rotate(apply_rotary_pos_emb, q, q, angles.cos(), angles.sin())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("columns", [96, 2880, 14336])
def test_gates_are_applied(kernels: Any, columns: int, dtype: Any) -> None:
    from torch.nn.functional import gelu, silu

    torch.manual_seed(columns)
    wide = torch.randn(2, 150, 2 * columns, device="cuda", dtype=dtype)
    gate, up = wide.double().chunk(2, -1)
    near(kernels.prompts.gated(wide, kernels.description.SILU), silu(gate) * up, dtype)
    near(kernels.prompts.gated(wide, kernels.description.GELU), gelu(gate, approximate="tanh") * up, dtype)
    assert kernels.prompts.gated(wide[:, :0], kernels.description.SILU).shape == (2, 0, columns)


@pytest.mark.parametrize("architecture", DENSE)
def test_a_prompt_gives_the_logits_of_the_models_own_code(architecture: str) -> None:
    """Padded, and longer than any window."""
    ids = torch.randint(3, 97, (2, 40), generator=torch.Generator().manual_seed(1)).cuda()
    mask = torch.ones_like(ids)
    mask[0, :7] = 0
    with torch.inference_mode():
        exact, made = (
            model(input_ids=ids, attention_mask=mask).logits[mask.bool()]
            for model in (build(architecture), with_kernels(build(architecture)))
        )
    torch.testing.assert_close(made, exact, atol=2e-4, rtol=2e-4)
