"""The implementation of routed experts: one of transformers', or (`experts=triton`) tokendyno's own Triton kernels, for
dense weights or MXFP4."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.distributed.tensor import DTensor
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

GROUPED = "grouped_mm_kept"
"""A second name for grouped_mm: on a GPU `generate` replaces the first for decoding."""
TRITON = "triton"
BLOCK = 32  # weights that share a scale in MXFP4


class PackedExperts(nn.Module):  # type: ignore[misc]
    """The experts of gpt-oss in MXFP4: blocks and scales under the names and in the layout of its checkpoints.

    A matrix (E, in, out) is blocks (E, out, in / 32, 16) uint8, two numbers a byte, and scales (E, out, in / 32) uint8,
    powers of two with a bias of 127.
    """

    def __init__(self, config: Any, dtype: torch.dtype) -> None:
        super().__init__()
        self.config, self._is_expert_parallel = config, False
        self.limit, self.alpha = config.swiglu_limit, config.swiglu_alpha
        self.num_experts = experts = config.num_local_experts  # of this rank, where ranks share them out
        wide, narrow = config.hidden_size, config.intermediate_size
        for name, rows, columns in (("gate_up_proj", 2 * narrow, wide), ("down_proj", wide, narrow)):
            shape = experts, rows, columns // BLOCK
            for part, size, kind in (
                ("blocks", (*shape, 16), torch.uint8),
                ("scales", shape, torch.uint8),
                ("bias", shape[:2], dtype),
            ):
                empty = torch.empty(size, dtype=kind, device="meta")
                self.register_parameter(f"{name}_{part}", nn.Parameter(empty, requires_grad=False))

    def forward(self, hidden_states: Any, router_indices: Any, routing_weights: Any) -> Any:
        """(tokens, hidden), indices and weights of experts (tokens, top) -> (tokens, hidden)."""
        return ALL_EXPERTS_FUNCTIONS[TRITON](self, hidden_states, router_indices, routing_weights)


def use_triton(model: Any, package: str) -> None:
    """Let the kernels in the folder `package` compute the experts of `model`. Dense experts of gpt-oss, (E, in, out),
    are laid out by rows; their shape stays. Biases beside MXFP4 become float32, as with the Hub's kernels."""
    from kernels import get_local_kernel

    ALL_EXPERTS_FUNCTIONS.register(TRITON, get_local_kernel(Path(package)).mixtures.compute)
    for module in model.modules():
        if isinstance(module, PackedExperts):
            for name in ("gate_up_proj_bias", "down_proj_bias"):
                module._parameters[name] = _changed(module._parameters[name], torch.Tensor.float)
        elif hasattr(module, "_is_expert_parallel") and module.is_transposed:
            for name in ("gate_up_proj", "down_proj"):
                by_rows = _changed(module._parameters[name], lambda w: w.transpose(1, 2).contiguous().transpose(1, 2))
                module._parameters[name] = by_rows
    model.set_experts_implementation(TRITON)


def _changed(weight: Any, change: Callable[[Any], Any]) -> Any:
    """A parameter after `change`, which keeps its shape. Of one that ranks share, this rank's part is changed."""
    if not isinstance(weight, DTensor):
        return nn.Parameter(change(weight.data), requires_grad=False)
    whole = {"shape": weight.shape, "stride": weight.stride(), "run_check": False}
    part = DTensor.from_local(change(weight.to_local()), weight.device_mesh, weight.placements, **whole)
    return nn.Parameter(part, requires_grad=False)


def set_experts(model: Any, name: str) -> None:
    """`name`: eager, batched_mm or grouped_mm; the last under a second name, which `generate` does not replace."""
    if name == "grouped_mm":
        ALL_EXPERTS_FUNCTIONS.register(GROUPED, ALL_EXPERTS_FUNCTIONS["grouped_mm"])
        name = GROUPED
    model.set_experts_implementation(name)
