"""A decoder layer for a token of each of several texts."""

import torch

from . import experts, mixtures, rows
from .attention import attend
from .described import Routing
from .routing import route


@torch.library.custom_op(
    "tokendyno_matvec::decoder_layer_of_texts", mutates_args=("keys", "values", "key_scales", "value_scales")
)
def decoder_layer_of_texts(
    hidden: torch.Tensor,
    cos: torch.Tensor | None,
    sin: torch.Tensor | None,
    keys: torch.Tensor,
    values: torch.Tensor,
    key_scales: torch.Tensor | None,
    value_scales: torch.Tensor | None,
    slot: torch.Tensor,
    filled: torch.Tensor,
    weights: list[torch.Tensor],
    scales: list[torch.Tensor | None],
    biases: list[torch.Tensor | None],
    norms: list[torch.Tensor | None],
    shifts: list[torch.Tensor | None],
    head_norms: list[torch.Tensor | None],
    eps: float,
    scaling: float,
    turns: torch.Tensor | None = None,
    sinks: torch.Tensor | None = None,
    gelu: bool = False,
    offset: float = 0.0,
    gated: bool = True,
    routing: list[int] | None = None,
    between: list[float] | None = None,
    beside: torch.Tensor | None = None,
    gain: float = 1.0,
    cap: float = 0.0,
    rotated: int = 0,
    pairs: bool = False,
) -> torch.Tensor:
    """`ops.decoder_layer` for hidden (B, 1, H): products on tensor cores, and norms in kernels of their own, since each
    program of a product would compute them for all texts."""

    def normed(x: torch.Tensor, number: int, residual: torch.Tensor | None = None) -> torch.Tensor:
        weight = norms[number]
        return x if weight is None else rows.norm(x, weight, eps, offset, residual, shift=shifts[number])

    def product(x: torch.Tensor, number: int, residual: torch.Tensor | None = None, **more: float) -> torch.Tensor:
        return rows.product(x, weights[number], biases[number], residual, scale=scales[number], **more)

    def added(x: torch.Tensor, number: int, residual: torch.Tensor, after: int) -> torch.Tensor:
        if norms[after] is None:
            return product(x, number, residual, gain=gain)
        return normed(product(x, number), after, residual)

    qkv = product(normed(hidden, 0), 0)
    mixed = hidden.new_empty(*hidden.shape[:-1], weights[1].shape[1])
    attend(
        qkv,
        cos,
        sin,
        keys,
        values,
        slot,
        filled,
        mixed,
        scaling,
        head_norms[0],
        head_norms[1],
        eps,
        turns=turns,
        sinks=sinks,
        offset=offset,
        key_scales=key_scales,
        value_scales=value_scales,
        cap=cap,
        rotated=rotated,
        pairs=pairs,
    )
    middle = added(mixed, 1, hidden, 1)
    if routing:
        gate, flat, shared = experts.Gate(*between), middle.view(len(middle), -1), None
        extra = weights[4] if len(weights) > 7 else None
        logits, vectors, _ = experts.router(flat, norms[2], eps, weights[-3], biases[-3], 1, extra=extra)
        ids, shares = route(logits, len(weights[-3]), Routing(*routing), gate.factor, beside)
        if len(weights) > 5:
            wide = product(vectors.view_as(middle), 2, gated=True)
            if extra is None:
                middle = product(wide, 3, middle)
            else:
                shared = product(wide, 3), logits
        up, down = list(zip(weights, scales, biases, strict=True))[-2:]
        return mixtures.forward(vectors, ids, shares, up, down, gate, middle, shared=shared).view_as(hidden)
    wide = product(normed(middle, 2), 2, gated=gated, gelu=gelu, acted=not gated)
    return added(wide, 3, middle, 3)


@decoder_layer_of_texts.register_fake
def _(hidden, *args, **kwargs):
    return torch.empty_like(hidden)


@torch.library.custom_op("tokendyno_matvec::attention_of_texts", mutates_args=("keys", "values"))
def attention_of_texts(
    hidden: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    slot: torch.Tensor,
    filled: torch.Tensor,
    weights: list[torch.Tensor],
    scales: list[torch.Tensor | None],
    biases: list[torch.Tensor | None],
    norm: torch.Tensor,
    head_norms: list[torch.Tensor | None],
    eps: float,
    scaling: float,
    residual: bool,
    turns: torch.Tensor | None = None,
) -> torch.Tensor:
    """The first half of a layer that is split over ranks. `residual`: whether the layer's input is added."""
    qkv = rows.product(rows.norm(hidden, norm, eps), weights[0], biases[0], scale=scales[0])
    mixed = hidden.new_empty(*hidden.shape[:-1], weights[1].shape[1])
    attend(qkv, cos, sin, keys, values, slot, filled, mixed, scaling, head_norms[0], head_norms[1], eps, turns=turns)
    return rows.product(mixed, weights[1], biases[1], hidden if residual else None, scale=scales[1])


@attention_of_texts.register_fake
def _(hidden, *args, **kwargs):
    return torch.empty_like(hidden)


@torch.library.custom_op("tokendyno_matvec::feed_forward_of_texts", mutates_args=())
def feed_forward_of_texts(
    middle: torch.Tensor,
    weights: list[torch.Tensor],
    scales: list[torch.Tensor | None],
    biases: list[torch.Tensor | None],
    norm: torch.Tensor,
    eps: float,
    residual: bool,
) -> torch.Tensor:
    """The second half."""
    wide = rows.product(rows.norm(middle, norm, eps), weights[0], biases[0], gated=True, scale=scales[0])
    return rows.product(wide, weights[1], biases[1], middle if residual else None, scale=scales[1])


@feed_forward_of_texts.register_fake
def _(middle, *args, **kwargs):
    return torch.empty_like(middle)
