"""ZeroGPU: a Space's own process has no GPU, and is lent one for the seconds of a call. Not tried on a real Space."""

import os

from tokendyno.backend.hardware.nvidia import DetectedGpus, Gpu

_UNSEEN = "ZeroGPU lends its GPU for a call at a time: clocks, temperature, energy and other processes are n/a"


def on_zero_gpu() -> bool:
    """Whether this process is that of a ZeroGPU Space (read as the package `spaces` 0.51 reads it)."""
    return os.environ.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")


def lent_gpu() -> DetectedGpus:
    """The GPU that a call gets, as the platform declares it; without a declaration what `spaces` 0.51 assumes."""
    name = os.environ.get("ZEROGPU_CUDA_DEVICE_NAME", "NVIDIA H200 MIG 3g.71gb")
    size = _number("ZEROGPU_CUDA_TOTAL_MEMORY", 74_625_056_768)
    capability = (_number("ZEROGPU_CUDA_CAPABILITY_MAJOR", 9), _number("ZEROGPU_CUDA_CAPABILITY_MINOR", 0))
    return DetectedGpus((Gpu(0, name, size, size, capability),), nvml_problem=_UNSEEN)


def _number(variable: str, otherwise: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isascii() and text.isdigit() else otherwise
