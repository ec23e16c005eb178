"""Matrices of GPT-2's layers stored by rows, so that kernels replace these layers as a whole."""

from typing import Any

from kernels import replace_kernel_forward_from_hub
from transformers.pytorch_utils import Conv1D

LAYERS = {"GPT2Block": "DecoderLayerOfGPT2"}
"""Classes whose q, k and v are one matrix as they come, and the layer name each is offered under."""

_ACTIVATIONS = ("gelu_new", "gelu_pytorch_tanh")


def store_by_rows(model: Any) -> None:
    """Store each Conv1D as kernels read a matrix, in its own memory; its shape stays (in, out)."""
    for module in model.modules():
        if type(module) is Conv1D and module.weight.is_contiguous():
            rows = module.weight.data.t().contiguous()
            module.weight.data = module.weight.data.view(rows.shape).copy_(rows).t()
    for kind in {type(module) for module in model.modules()}:
        if kind.__name__ in LAYERS:
            replace_kernel_forward_from_hub(kind, LAYERS[kind.__name__], _computes_whole)


def _computes_whole(block: Any) -> bool:
    """Whether kernels may replace this layer: dense, stored by rows, with an activation that they have."""
    config, first = block.attn.config, block.attn.c_attn
    stored = type(first) is Conv1D and not first.weight.is_contiguous()
    return stored and config.activation_function in _ACTIVATIONS and not config.add_cross_attention
