"""Cuts off what the scale of transformers' 8-bit cache cannot express."""

from typing import Any

import torch
from transformers.cache_utils import Fp8QuantizedLayer


def saturate_fp8_cache() -> None:
    """Let the 8-bit cache hold the largest number that it can express for each number beyond it.

    transformers takes the scale of a layer from the prompt. Keys and values of later tokens may be larger; torch 2.11
    makes NaN of them when it converts, and so of every score after them, torch 2.13 cuts them off on a CPU.
    """
    if getattr(Fp8QuantizedLayer, "saturates", False):
        return
    plain = Fp8QuantizedLayer._quantize

    def quantize(self: Any, tensor: torch.Tensor, scale: torch.Tensor | None = None) -> Any:
        """(codes of shape `tensor.shape`, scale of shape ()); scale None: taken from `tensor`."""
        if scale is not None:
            tensor = torch.clamp(tensor.float(), -scale * self.fp8_max, scale * self.fp8_max)
        return plain(self, tensor, scale)

    Fp8QuantizedLayer._quantize, Fp8QuantizedLayer.saturates = quantize, True
