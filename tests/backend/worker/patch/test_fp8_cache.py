"""transformers' 8-bit cache cuts off what is larger than any number of the prompt."""

from typing import Any

import pytest
import torch
from transformers.cache_utils import Fp8QuantizedLayer

from tokendyno.backend.worker.patch.fp8_cache import saturate_fp8_cache


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class whose conversion makes NaN of numbers past the range, as torch 2.11 does."""
    monkeypatch.setattr(Fp8QuantizedLayer, "saturates", False, raising=False)

    def quantize(self: Any, tensor: torch.Tensor, scale: torch.Tensor | None = None) -> Any:
        if scale is None:
            scale = tensor.abs().amax().float() / self.fp8_max
        codes = tensor.float() / scale
        return torch.where(codes.abs() <= 464, codes, torch.nan).to(self.fp8_dtype), scale

    monkeypatch.setattr(Fp8QuantizedLayer, "_quantize", quantize)


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_later_numbers_are_cut_off_at_the_largest_of_the_prompt(dtype: torch.dtype) -> None:
    saturate_fp8_cache()
    saturate_fp8_cache()  # a second call changes nothing
    layer = Fp8QuantizedLayer()
    prompt = torch.tensor([0.5, -2.0, 0.25, 1.0], dtype=dtype).reshape(1, 1, 2, 2)
    later = torch.tensor([1.5, -30.0, 8.0, 2.05], dtype=dtype).reshape(1, 1, 2, 2)
    layer.update(prompt, prompt)
    keys, values = layer.update(later, -later)
    expected = torch.tensor([0.5, -2.0, 0.25, 1.0, 1.5, -2.0, 2.0, 2.0])
    assert torch.allclose(keys.flatten().float(), expected, rtol=0.07)
    assert torch.equal(keys[..., 2:, :], -values[..., 2:, :])
