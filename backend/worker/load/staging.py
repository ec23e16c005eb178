"""Stages random weights, generated on the GPU, in host memory until they are quantized, as a checkpoint's would be."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

STAGING_BYTES = 64 << 20
"""Size of the pinned buffer through which tensors are copied to the host. Copying through it is faster than copying
straight into freshly allocated pages; 0 disables it."""

HOST_MARGIN_BYTES = 2 << 30  # host memory to leave free for quantizing
GPU_MARGIN_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Staging:
    """Where random weights are generated and where they wait.

    device   device that generates the numbers, which depend on it
    to_host  whether the tensors are copied to host memory to wait there
    note     for the user where this is not the usual way, else ""
    """

    device: str
    to_host: bool = False
    note: str = ""


def choose_staging(dense_bytes: int, gpu: str, gpu_free_bytes: int, host_free_bytes: int) -> Staging:
    """Where to generate and keep so many bytes of dense weights, so that the GPU holds only quantized ones at the
    end."""
    fits_host = dense_bytes + HOST_MARGIN_BYTES <= host_free_bytes
    if fits_host and dense_bytes + GPU_MARGIN_BYTES <= gpu_free_bytes:
        return Staging(gpu, to_host=True)
    dense = f"{dense_bytes / 1e9:,.1f} GB of dense random weights"
    if not fits_host and 1.6 * dense_bytes < gpu_free_bytes:  # dense, plus 8-bit and some scratch
        return Staging(
            gpu, note=f"no room in host memory for {dense}: quantized on the GPU, which keeps more memory reserved"
        )
    return Staging("cpu", note=f"no room on the GPU for {dense}: generated on the CPU, which gives different numbers")


def copy_to_host(tensors: Mapping[str, torch.Tensor], staging_bytes: int = STAGING_BYTES) -> dict[str, torch.Tensor]:
    """The same tensors in host memory, each with its own allocation, which is freed when the tensor is dropped."""
    buffer = None
    if staging_bytes:
        on_gpu = any(tensor.is_cuda for tensor in tensors.values())
        buffer = torch.empty(staging_bytes, dtype=torch.uint8, pin_memory=on_gpu)
    return {name: _copy(tensor.detach(), buffer) for name, tensor in tensors.items()}


def _copy(tensor: torch.Tensor, buffer: torch.Tensor | None) -> torch.Tensor:
    """Copy through `buffer` (bytes,), so that all of torch's threads share the first touch of the new pages."""
    copy = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    if buffer is None or tensor.numel() == 0:
        return copy.copy_(tensor)
    source, target = (one.reshape(-1).view(torch.uint8) for one in (tensor, copy))
    for begin in range(0, source.numel(), buffer.numel()):
        part = source[begin : begin + buffer.numel()]
        staged = buffer[: part.numel()]
        staged.copy_(part)  # waits for the GPU
        target[begin : begin + part.numel()].copy_(staged)
    return copy
