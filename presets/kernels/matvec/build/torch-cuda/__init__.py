"""Decoding token by token, for NVIDIA GPUs: products of a vector and a matrix, and a whole decoder layer of them."""

from . import layers

__all__ = ["layers"]
