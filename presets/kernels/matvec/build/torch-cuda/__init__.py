"""Single-token decoding on NVIDIA GPUs: matrix-vector products, and a whole decoder layer of them."""

from . import layers

__all__ = ["layers"]
