"""RMSNorm for CPUs."""

from . import layers

__all__ = ["layers"]
