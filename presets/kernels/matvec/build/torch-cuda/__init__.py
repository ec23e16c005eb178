"""Single-token decoding on NVIDIA GPUs: matrix-vector products, and a whole decoder layer of them."""

from . import exchange, experts, layers, mixtures, routing

__all__ = ["exchange", "experts", "layers", "mixtures", "routing"]
