"""Decoding on NVIDIA GPUs: matrix-vector products, and whole decoder layers of them. To read in running order:

layers          classes that replace a model's; anything but a token of each of a few texts goes the model's own way
description     what a decoder layer consists of
decoder_layer   its steps, a kernel each, and when it can be computed so:
  ops             queries, keys and values; output projection; gate and up; down: by the kind of the weights
    products        dense rows, and 8 bits: with `slabs` (shared memory) and `cores` (tensor cores)
    nibbles         bitsandbytes' 4 bits, and torchao's, which lie in `tiles`
    rows            several texts at once, and norms
  attention       rotation, the new key and value, the weighted sum: with `attention_short`, `_long` and `_fp8`
  states          in its place: convolutions and linear attention, with their states
  latents         or multi-head latent attention
  routing         which experts a token takes
  experts         their products for one token, `mixtures` for several
  exchange        sums over ranks
prompts         between the products of many tokens: rotation, and gates
steps           before and after all layers: angles, and the next token
settings        how each kernel is cut and launched
parts           what kernels share, as `core_parts` and `attention_parts`
"""

from . import description, exchange, experts, layers, mixtures, routing

__all__ = ["description", "exchange", "experts", "layers", "mixtures", "routing"]
