"""RMSNorm for NVIDIA GPUs."""

from . import layers

__all__ = ["layers"]
