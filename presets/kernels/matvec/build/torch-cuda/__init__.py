"""Single-token decoding on NVIDIA GPUs: matrix-vector products, and a whole decoder layer of them."""

from . import described, exchange, experts, layers, mixtures, routing

__all__ = ["described", "exchange", "experts", "layers", "mixtures", "routing"]
