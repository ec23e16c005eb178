"""Layers whose q, k and v are one matrix as they come, for kernels that replace them as a whole. GPT-2's matrices are
stored by rows for that."""

from typing import Any

from kernels import replace_kernel_forward_from_hub
from transformers.pytorch_utils import Conv1D

from tokendyno.backend.worker.patch.projections import offer_layers

_ACTIVATIONS = ("gelu_new", "gelu_pytorch_tanh")


def store_by_rows(model: Any) -> None:
    """Store each Conv1D as kernels read a matrix, in its own memory; its shape stays (in, out). Offer such layers."""
    for module in model.modules():
        if type(module) is Conv1D and module.weight.is_contiguous():
            rows = module.weight.data.t().contiguous()
            module.weight.data = module.weight.data.view(rows.shape).copy_(rows).t()
    for kind in {type(module) for module in model.modules() if type(module).__name__ == "GPT2Block"}:
        replace_kernel_forward_from_hub(kind, "DecoderLayerOfGPT2", _is_stored)
    offer_layers(model)


def _is_stored(block: Any) -> bool:
    """Whether kernels may replace this layer: dense, stored by rows, with an activation that they have."""
    config, first = block.attn.config, block.attn.c_attn
    stored = type(first) is Conv1D and not first.weight.is_contiguous()
    return stored and config.activation_function in _ACTIVATIONS and not config.add_cross_attention
