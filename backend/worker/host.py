"""Random weights that a GPU draws and host memory keeps until they are packed, as it does those of a checkpoint."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

STAGING_BYTES = 64 << 20
"""Pinned memory by which a GPU's tensors come to the host, faster than into pages that no one has touched yet; 0: they
are copied without it."""

HOST_MARGIN_BYTES = 2 << 30  # of host memory that are left for what packs
GPU_MARGIN_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Places:
    """drawn   device on which the numbers are drawn: they depend on it
    copied  whether the tensors go to host memory to wait there until they are packed
    note    for the user where that is not the usual way, else ""
    """

    drawn: str
    copied: bool = False
    note: str = ""


def places(dense_bytes: int, gpu: str, gpu_free_bytes: int, host_free_bytes: int) -> Places:
    """Where so many random weights are drawn, and wait, for a GPU to hold only packed ones in the end."""
    in_host = dense_bytes + HOST_MARGIN_BYTES <= host_free_bytes
    if in_host and dense_bytes + GPU_MARGIN_BYTES <= gpu_free_bytes:
        return Places(gpu, copied=True)
    dense = f"{dense_bytes / 1e9:,.1f} GB of dense random weights"
    if not in_host and 1.6 * dense_bytes < gpu_free_bytes:  # dense ones, and packed at 8 bits and some more
        return Places(gpu, note=f"host memory has no room for {dense}: packed on the GPU, more of it stays reserved")
    return Places("cpu", note=f"the GPU has no room for {dense}: host memory drew them, which gives other numbers")


def copied(tensors: Mapping[str, torch.Tensor], staging_bytes: int = STAGING_BYTES) -> dict[str, torch.Tensor]:
    """The same tensors in host memory, each with memory of its own, which goes back when it is dropped."""
    staging = None
    if staging_bytes:
        on_gpu = any(tensor.is_cuda for tensor in tensors.values())
        staging = torch.empty(staging_bytes, dtype=torch.uint8, pin_memory=on_gpu)
    return {name: _copy(tensor.detach(), staging) for name, tensor in tensors.items()}


def _copy(tensor: torch.Tensor, staging: torch.Tensor | None) -> torch.Tensor:
    """All of torch's threads write into the new pages, from a part that has come to `staging` (bytes,)."""
    found = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    if staging is None or tensor.numel() == 0:
        return found.copy_(tensor)
    source, target = (one.reshape(-1).view(torch.uint8) for one in (tensor, found))
    for begin in range(0, source.numel(), staging.numel()):
        part = source[begin : begin + staging.numel()]
        staged = staging[: part.numel()]
        staged.copy_(part)  # waits for the GPU
        target[begin : begin + part.numel()].copy_(staged)
    return found
