"""Layers with a fast path for a single token. Several tokens, or anything unusual, take the model's own code."""

from inspect import Parameter, Signature

import torch
from torch import nn

from . import decoder_layer, exchange, ops, prompts, steps


class _Layer(nn.Module):
    """What the package `kernels` reads of a layer before it replaces a forward pass by this one's."""

    can_torch_compile = True
    has_backward = False


class Linear(_Layer):
    """Replaces nn.Linear, dense or with torchao's 8-bit or 4-bit weights: a matrix-vector product in one kernel, and of
    a matrix that is dense or of 8 bits that with a token of each of a few texts."""

    weight: torch.Tensor
    bias: torch.Tensor | None

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return _product(input, self.weight, self.bias)


def _product(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    matrix = ops.matrix(weight) if x.is_cuda else None
    if matrix is None or not ops.few(x, matrix[0]):
        return nn.functional.linear(x, weight, bias)
    return ops.linear(x, *matrix, bias)


class SummedLinear(_Layer):
    """Replaces a linear layer whose parts ranks add up: GPUs of one machine write theirs into each other's memory."""

    can_torch_compile = False

    def forward(self, x):
        out = decoder_layer.add_up(self, _product(x, self.weight, None))
        return out if self.bias is None else out + self.bias


class SummedEmbedding(_Layer):
    """Replaces an embedding of which each rank has some rows: looked up and exchanged in one kernel."""

    can_torch_compile = False

    def forward(self, input):
        width = self.weight.shape[1]
        if width % 4 or not exchange.direct(self.weight, input.numel() * width):
            return type(self).forward(self, input)
        return exchange.looked_up(input.contiguous(), self.weight)


class GatheredLinear(_Layer):
    """Replaces the output head of which each rank has some rows: likewise."""

    can_torch_compile = False

    def forward(self, x):
        own = self.part(x).contiguous()
        every = exchange.gather(own) if exchange.direct(own) else self.gathered(own)
        return every.movedim(0, -2).flatten(-2)


def _taking(names, given_back=lambda hidden: hidden):
    """The forward pass of decoder layers that take `names` behind the hidden states, in this order, as the package
    `kernels` checks."""

    def forward(self, hidden_states, *given, **more):
        more |= dict(zip(names.split(), given, strict=False))
        cache, angles = more.pop("past_key_values", None), more.get("position_embeddings")
        if isinstance(angles, torch.Tensor):  # DeepSeek V2's, as complex numbers
            angles = torch.view_as_real(angles).unbind(-1)

        def own():
            out = type(self).forward(self, hidden_states, past_key_values=cache, **more)
            return out[0] if isinstance(out, tuple) else out

        if decoder_layer.fits(self, hidden_states, cache):
            return given_back(decoder_layer.layer(self, hidden_states, cache, own, *(angles or ())))
        return given_back(own())

    every = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("self", "hidden_states", *names.split())]
    forward.__signature__ = Signature([*every, Parameter("kwargs", Parameter.VAR_KEYWORD)])
    return forward


class DecoderLayer(_Layer):
    """Replaces a decoder layer with fused projections that `description` knows. For a single token it is five kernels,
    six in mixtures, and seven where what is added is normalized, as in Olmo 3, GLM-4 and Gemma 3 (six where the next
    product does it); latent attention has two or three more.

    It attends to the filled slots of the custom decode loop's static cache, or updates the states in it.
    """

    forward = _taking("attention_mask position_ids past_key_values use_cache position_embeddings")


class DecoderLayerInPair(_Layer):
    """The same for Bamba, whose layers return attention's weights too: here None."""

    forward = _taking(
        "attention_mask position_ids past_key_values use_cache position_embeddings", lambda hidden: (hidden, None)
    )


class DecoderLayerWithAnglesFirst(_Layer):
    """The same for Gemma 2 and 3, LFM2, MiniMax-M2, Mixtral, Qwen3-Next and 3.5, which take the angles second."""

    forward = _taking("position_embeddings attention_mask position_ids past_key_values")


class DecoderLayerWithoutPositions(_Layer):
    """The same for Granite's hybrids, whose layers get no positions, and angles where they rotate at all."""

    forward = _taking("attention_mask past_key_values use_cache position_embeddings")


class DecoderLayerWithTwoMasks(_Layer):
    """The same for Falcon-H1, whose layers get a mask for attention and one for the mixer, and return a tuple."""

    forward = _taking(
        "attention_mask mamba_attention_mask position_ids past_key_values use_cache position_embeddings",
        lambda hidden: (hidden,),
    )


class DecoderLayerAlone(_Layer):
    """The same for Nemotron-H, each of whose layers is attention without positions, a mixer or an MLP."""

    forward = _taking("past_key_values attention_mask position_ids use_cache")


class DecoderLayerOfGPT2(_Layer):
    """The same for GPT-2, whose layers get no angles: their position is in the vector."""

    forward = _taking("past_key_values attention_mask encoder_hidden_states encoder_attention_mask use_cache")


class RotaryEmbedding(_Layer):
    """Replaces the rotary embedding of the same models: one kernel for the angles of a new token."""

    def forward(self, x, position_ids):
        return _angles(self, x, position_ids, x.dtype)


class TypedRotaryEmbedding(_Layer):
    """Replaces that of Gemma 3 and Mellum, whose kinds of layer have their own frequencies."""

    def forward(self, x, position_ids, layer_type):
        return _angles(self, x, position_ids, x.dtype, 2, layer_type)


class FloatRotaryEmbedding(_Layer):
    """Replaces that of Olmo 3, the same in float32."""

    def forward(self, x, position_ids, layer_type):
        return _angles(self, x, position_ids, torch.float32, 2, layer_type)


class HalfRotaryEmbedding(_Layer):
    """Replaces that of gpt-oss, which returns each angle once for both halves of a head."""

    def forward(self, x, position_ids):
        return _angles(self, x, position_ids, x.dtype, 1)


def _angles(module, x, position_ids, dtype, copies=2, *layer_type):
    """cos and sin of one token of each text, each angle so many times; of other tokens by the model's own code."""
    if torch.compiler.is_compiling() or not steps.can_rotate(module, x, position_ids, *layer_type):
        return type(module).forward(module, x, position_ids, *layer_type)
    kind = f"{layer_type[0]}_" if layer_type else ""
    frequencies, scaling = (getattr(module, f"{kind}{name}") for name in ("inv_freq", "attention_scaling"))
    return steps.rotary(frequencies, position_ids, scaling, dtype, copies)


class rotary_pos_emb(_Layer):
    """Replaces the function that rotates queries and keys, by its name in transformers: one kernel for all tokens."""

    def forward(self, q, k, cos, sin, unsqueeze_dim=1):
        if prompts.can_rotate(self, q, k, cos, sin, unsqueeze_dim):
            return prompts.rotate(q, k, cos, sin, unsqueeze_dim)
        return type(self).forward(self, q, k, cos, sin, unsqueeze_dim)


class GatedMLP(_Layer):
    """Replaces an MLP whose gate and up are one matrix: what is between its two products is one kernel."""

    def forward(self, x):
        parts = prompts.gate_of(self, x)
        if parts is None:
            return type(self).forward(self, x)
        wide, down, activation = parts
        return down(prompts.gated(wide(x), activation))


class StepEnd(_Layer):
    """Replaces the end of a greedy step of the custom decode loop: next token and all counters, in one kernel."""

    def forward(self, logits, step):
        if torch.compiler.is_compiling() or not steps.can_end(logits):
            type(self).forward(self, logits, step)
        else:
            steps.end(logits, step)
