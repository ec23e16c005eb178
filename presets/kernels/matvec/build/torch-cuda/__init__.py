"""Single-token decoding on NVIDIA GPUs: matrix-vector products, and a whole decoder layer of them."""

from . import experts, layers, mixtures

__all__ = ["experts", "layers", "mixtures"]
