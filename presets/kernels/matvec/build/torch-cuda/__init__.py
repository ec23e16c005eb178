"""Single-token decoding on NVIDIA GPUs: matrix-vector products, and a whole decoder layer of them."""

from . import description, exchange, experts, layers, mixtures, routing

__all__ = ["description", "exchange", "experts", "layers", "mixtures", "routing"]
