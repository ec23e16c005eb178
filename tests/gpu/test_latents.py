"""Kernels of latent attention against double precision. Whole layers of it are compared in test_matvec.py,
test_whole_layers.py and test_experts.py."""

import itertools
from typing import Any

import pytest

from tests.gpu.test_matvec import build, with_kernels
from tests.gpu.test_own import Maker, prompt
from tests.support.rotation import rotated

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]

SIZES = {
    "DeepSeek-V2-Lite": (16, 128, 128, 512, 64),
    "DeepSeek-V3": (128, 128, 128, 512, 64),
    "GLM-4.7-Flash": (20, 192, 256, 512, 64),
    "MiniCPM3": (40, 64, 64, 256, 32),
    "tiny": (3, 16, 48, 16, 16),
}
"""Heads; numbers of a key that are not rotated, of a value, and of a latent; those that are rotated."""
ROTATION = {"halves": (False, 1), "moved apart": (True, 1), "in place": (True, 2)}
"""Whether neighbours are rotated with each other, and how far apart angles lie."""

CASES = [
    *itertools.product(SIZES, ["float32", "bfloat16"], [(40, 1), (700, 32), (9000, 2)], ["moved apart"]),
    *itertools.product(["DeepSeek-V2-Lite", "tiny"], ["bfloat16", "float16"], [(300, 3), (700, 1)], ROTATION),
]


@pytest.mark.parametrize(("model", "dtype", "length", "texts", "rotation"), [(*c[:2], *c[2], c[3]) for c in CASES])
def test_latent_attention_of_one_token_is_that_of_double_precision(
    kernels: Any, model: str, dtype: str, length: int, texts: int, rotation: str
) -> None:
    """Behind padding of another length in each text; what is past the last token is not read."""
    import torch

    heads, size, value_size, rank, turned = SIZES[model]
    pairs, step = ROTATION[rotation]
    kind, limit, place = getattr(torch, dtype), 1e-4 if dtype == "float32" else 2e-2, length - 7
    torch.manual_seed(length)

    def random(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda", dtype=kind)

    x, w = random(texts, 1, heads * (size + turned) + rank + turned), random(heads * (size + value_size), rank) / 8
    latents, keys, norm = random(texts, 1, length, rank), random(texts, 1, length, turned), random(rank)
    for kept in (latents, keys):
        kept[:, :, place:] = float("nan")
    cos, sin = (random(texts, 1, turned // 2, step)[..., 0] for _ in range(2))
    filled = torch.arange(length, device="cuda") <= place
    filled = filled & (torch.arange(length, device="cuda") >= 5 * torch.arange(texts, device="cuda")[:, None] % 30)
    slot, scaling = torch.tensor([place], device="cuda"), (size + turned) ** -0.5
    mixer = kernels.description.Mixer(kernels.description.LATENTS, rank, 1, heads, size, value_size)
    mine, theirs = latents.clone(), keys.clone()
    found = kernels.latents.attend(x, x, cos, sin, mine, theirs, slot, filled, mixer, w, norm, scaling, 1e-6, pairs)

    queries, latent, key = x[:, 0].double().split([heads * (size + turned), rank, turned], -1)
    plain, turning = queries.view(texts, heads, -1).split([size, turned], -1)
    latent = latent * torch.rsqrt(latent.pow(2).mean(-1, keepdim=True) + 1e-6) * norm.double()
    turning, key = (
        rotated(part, cos[:, :1].double().expand(-1, part.shape[1], -1), sin[:, :1].double(), turned, pairs)
        for part in (turning, key[:, None])
    )
    if rotation == "moved apart":
        turning, key = (torch.cat([part[..., ::2], part[..., 1::2]], -1) for part in (turning, key))
    past, past_keys = torch.zeros_like(latents[:, 0]).double(), torch.zeros_like(keys[:, 0]).double()
    past[:, :place], past_keys[:, :place] = latents[:, 0, :place].double(), keys[:, 0, :place].double()
    past[:, place], past_keys[:, place] = latent, key[:, 0]
    of_keys, of_values = w.double().view(heads, -1, rank).split([size, value_size], 1)
    scores = torch.einsum("bhd,hdr,btr->bht", plain, of_keys, past) + torch.einsum("bhp,btp->bht", turning, past_keys)
    weights = (scores * scaling).masked_fill(~filled[:, None], -torch.inf).softmax(-1)
    expected = torch.einsum("bht,btr,hvr->bhv", weights, past, of_values).flatten(1)
    assert float((found[:, 0].double() - expected).norm() / expected.norm()) < limit
    assert torch.allclose(mine[:, 0, place].double(), latent, rtol=limit, atol=limit)
    assert torch.allclose(theirs[:, 0, place].double(), key[:, 0], rtol=limit, atol=limit)
    assert torch.equal(mine[:, :, :place], latents[:, :, :place]) and bool(mine[:, :, place + 1 :].isnan().all())


def test_a_layer_whose_matrix_of_keys_and_values_is_packed_goes_the_models_own_way(kernels: Any) -> None:
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    from tests.support.decode_loop import greedy

    def packed() -> Any:
        model = build("youtu")
        quantize_(model.model, Int8WeightOnlyConfig(set_inductor_config=False))
        return model

    model = with_kernels(packed())
    assert kernels.description.describe(model.model.layers[0]) is not None
    assert Maker(model, 60)(prompt(9)).equal(greedy(packed(), prompt(9)))
