"""The kernels as torch operators, and which parts of a model they accept."""

from collections.abc import Callable

import torch
from torch import nn

from . import eight_bits, exchange, experts, nibbles, products, rows, texts, tiles
from .attention import attend
from .described import Parts, Routing, describe, routing_of, rows_of
from .products import HELD_COLUMNS, MOST_COLUMNS


def matrix(weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None] | None:
    """What the kernels read: the rows of a weight and None or, for 8 bits, a scale per row; or 4-bit tiles with scales
    and zeros of their groups; or bitsandbytes' rows with its scales. None if no kernel supports this weight."""
    if type(weight).__name__ == "Params4bit":
        return nibbles.matrix(weight)
    if weight.shape[-1] % 16 or weight.shape[-1] > MOST_COLUMNS:
        return None
    if type(weight) in (nn.Parameter, torch.Tensor):
        return (weight, None) if weight.is_floating_point() and weight.is_contiguous() else None
    if type(weight).__name__ == "Int4TilePackedTo4dTensor":
        whole = weight.shape[-1] <= HELD_COLUMNS and tiles.whole(weight)
        return (weight.qdata, weight.scale_and_zero) if whole else None
    if type(weight).__name__ not in ("Int8Tensor", "Float8Tensor") or weight.act_quant_kwargs is not None:
        return None
    if weight.scale.numel() != weight.shape[0] or getattr(weight, "act_pre_scale", None) is not None:
        return None
    if not products.reads(weight.qdata) or not _symmetric(weight):
        return None
    return weight.qdata, weight.scale.reshape(-1)


def sizes(weight: torch.Tensor) -> tuple[int, int]:
    """(rows, columns) of a weight as returned by `matrix`."""
    if weight.dtype == torch.uint8:
        return weight.shape[0], 2 * weight.shape[1]
    return tiles.sizes(weight) if weight.dtype == torch.int32 else (weight.shape[0], weight.shape[1])


def product(
    x: torch.Tensor, weight: torch.Tensor, out: torch.Tensor, ask: tuple[torch.Tensor, ...] = (), **more: object
) -> None:
    """`out` = `weight` @ `x` with fused operations, by the kernel for this kind of weight."""
    if weight.dtype == torch.int32:
        tiles.product(x, weight, out, **more)
    elif weight.dtype == torch.uint8:
        nibbles.product(x, weight, out, **more)
    else:
        products.product(x, weight, out, ask=ask, **more)


SUMMED = True  # False: a norm of a sum's part is always a kernel of its own


def add(
    x: torch.Tensor,
    weight: torch.Tensor,
    scale: torch.Tensor | None,
    bias: torch.Tensor | None,
    residual: torch.Tensor,
    out: torch.Tensor,
    norm: torch.Tensor | None,
    eps: float,
    offset: float,
    ask: tuple[torch.Tensor, ...] = (),
    gain: float = 1.0,
) -> None:
    """`out` = `residual` + norm(`weight` @ `x` + `bias`), or without a norm, in one kernel, + `gain` * (...)."""
    if norm is None:
        product(x, weight, out, scale=scale, bias=bias, residual=residual, ask=ask, gain=gain)
        return
    plain = torch.empty_like(out)
    product(x, weight, plain, scale=scale, bias=bias, ask=ask)
    products.add_norm(plain.view(-1), norm, residual.view(-1), out.view(-1), eps, offset)


def _symmetric(weight: torch.Tensor) -> bool:
    """Whether all zero points are 0. Read from the device once per weight and stored on it, for the compiler."""
    if not hasattr(weight, "tokendyno_symmetric"):
        if torch.compiler.is_compiling():
            return False
        zeros = getattr(weight, "zero_point", None)
        weight.tokendyno_symmetric = zeros is None or not bool(zeros.any())
    return bool(weight.tokendyno_symmetric)


def few(x: torch.Tensor, weight: torch.Tensor) -> bool:
    """Whether x (..., K) is one token, or one of each of a few texts that a kernel multiplies with these rows."""
    if x.shape[:-1].numel() == 1:
        return True
    return x.ndim == 3 and x.shape[1] == 1 and x.shape[0] <= rows.MOST and rows.fits(weight)


@torch.library.custom_op("tokendyno_matvec::linear", mutates_args=())
def linear(
    x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor | None, bias: torch.Tensor | None
) -> torch.Tensor:
    """(..., K) of one token, or of several where `rows.fits` -> (..., N)."""
    if x.shape[:-1].numel() > 1:
        return rows.product(x.contiguous(), weight, bias, scale=scale)
    out = torch.empty(*x.shape[:-1], sizes(weight)[0], dtype=x.dtype, device=x.device)
    product(x.contiguous(), weight, out, scale=scale, bias=bias)
    return out


@linear.register_fake
def _(x, weight, scale, bias):
    return x.new_empty(*x.shape[:-1], sizes(weight)[0])


def fits(module: nn.Module, hidden: torch.Tensor, cache: object) -> bool:
    """Whether this is one token of each of a few texts, in a layer that the kernels support."""
    several = hidden.shape[0] > 1
    if hidden.shape[1] != 1 or hidden.shape[0] > rows.MOST or not hidden.is_cuda or cache is None:
        return False
    parts = describe(module)
    if parts is None:
        return False
    attention, ranks = parts.attention, hasattr(parts.products[1], "add_up")
    held, size = cache.layers[attention.layer_idx], attention.head_dim
    slots = getattr(held, "slots", None)
    if slots is None or not slots.decoding:
        return False
    rounded = hasattr(held, "key_scales")
    if rounded and (ranks or parts.cap or not eight_bits.reads(attention, parts.heads[0], hidden.dtype)):
        return False
    if 0 < parts.unscaled < cache.length:  # a later token's queries are scaled
        return False
    if not 16 <= size <= 256 or size & (size - 1) or getattr(attention, "num_key_value_groups", 1) > 16:
        return False
    if not attention.is_causal or (parts.gain != 1 and parts.norms[1] is not None):
        return False
    if parts.heads[0] is not None and not parts.rotated:
        return False
    if ranks and not parts.plain():
        return False
    normed = parts.shifts[0] is not None  # no kernel of one token with quantized weights computes a LayerNorm
    if parts.experts is not None:
        alone = not several and len(parts.products) == 2  # ranks compute one text at a time, and no shared expert
        if not (alone if ranks else experts.of(parts.experts) is not None):
            return False
    read = [matrix(rows_of(product)) for product in parts.products]
    if len(read) > 4 and (read[4] is None or read[4][1] is not None):  # a shared expert's gate is read like a router
        return False
    if several:
        return all(one is not None and rows.fits(one[0]) for one in read)
    return all(one is not None and (one[1] is None or not normed) for one in read)


MAX_PREFETCH_BYTES = 20 << 20  # 0: never prefetch. L2 has 50 MB on Hopper, shared with everything else that is read


def to_prefetch(weights: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Those of up to two matrices, in the order in which they are read, that fit in L2."""
    asked: list[torch.Tensor] = []
    for weight in weights:
        if sum(one.numel() * one.element_size() for one in [*asked, weight]) > MAX_PREFETCH_BYTES:
            break
        asked.append(weight)
    return tuple(asked)


def layer(
    module: nn.Module,
    hidden: torch.Tensor,
    cache: object,
    own: Callable[[], torch.Tensor],
    cos: torch.Tensor | None = None,
    sin: torch.Tensor | None = None,
) -> torch.Tensor:
    """Run one token of each text through a decoder layer; keys and values are written to the cache. cos, sin: of the
    rotary embedding, if there is one; own: the model's code, which the first step is held against: where it gives
    something else, it stays."""
    parts = describe(module)
    if not parts.rotated:
        cos, sin = None, None
    held = cache.layers[parts.attention.layer_idx]
    matrices = [(*matrix(rows_of(part)), part.bias) for part in parts.products]
    if hasattr(parts.products[1], "add_up"):
        return shared_layer(module, parts, hidden, held, cos, sin, [one[:2] for one in matrices])
    more: dict[str, object] = {
        "gelu": parts.gelu,
        "offset": parts.offset,
        "gated": parts.gated,
        "gain": parts.gain,
        "cap": parts.cap,
        "rotated": parts.rotated,
        "pairs": parts.pairs,
    }
    if (router := parts.router) is not None:
        matrices += [(router.weight, None, getattr(router, "bias", None)), *experts.of(parts.experts)]
        factor = getattr(router, "routed_scaling_factor", 1.0)
        more["routing"], more["beside"] = list(routing_of(router)), getattr(router, "e_score_correction_bias", None)
        more["between"] = list(experts.gate_of(parts.experts, factor))
    weights, scales, biases = (list(one) for one in zip(*matrices, strict=True))
    of_8_bits = getattr(held, "key_scales", None), getattr(held, "value_scales", None)
    state = (hidden, cos, sin, held.keys, held.values, *of_8_bits, held.slots.current, held.slots.filled)
    turns, scaling = getattr(held.slots, "turns", None), parts.attention.scaling
    told = getattr(router, "told", None) if hidden.shape[0] == 1 else None  # by whom this token's way is followed
    if told is not None:
        number = router.weight.shape[0] + (len(parts.products) > 4)
        more["scored"] = torch.empty(number, dtype=torch.float32, device=hidden.device)

    def run() -> torch.Tensor:
        if hidden.shape[0] > 1:
            return texts.decoder_layer_of_texts(
                *state,
                weights,
                scales,
                biases,
                parts.norms,
                parts.shifts,
                parts.heads,
                parts.eps,
                scaling,
                turns,
                getattr(parts.attention, "sinks", None),
                **more,
            )
        return decoder_layer(
            *state,
            weights,
            scales,
            biases,
            parts.norms,
            parts.shifts,
            parts.heads,
            parts.eps,
            scaling,
            turns,
            getattr(parts.attention, "sinks", None),
            **more,
        )

    if router is None and not torch.compiler.is_compiling():
        if hidden.shape[0] > 1:
            rows.settle(weights, hidden.shape[0], parts.gated, run)
        else:
            products.settle(weights, parts.gated, run)
        if not hasattr(module, "tokendyno_checked") and not torch.cuda.is_current_stream_capturing():
            module.tokendyno_checked = True
            if not _near(run(), expected := own(), hidden):
                del module.forward
                return expected
    out = run()
    if told is not None:
        told(more["scored"])
    return out


def _near(found: torch.Tensor, expected: torch.Tensor, hidden: torch.Tensor) -> bool:
    """Whether a layer adds the same to `hidden` within rounding: that of the sum, and of numbers on the way to it."""
    rounding = 2 * torch.finfo(expected.dtype).eps
    found, expected, hidden = found.float(), expected.float(), hidden.float()
    return bool((found - expected).norm() <= (expected - hidden).norm() / 8 + rounding * expected.norm())


def shared_layer(
    module: nn.Module,
    parts: Parts,
    hidden: torch.Tensor,
    held: object,
    cos: torch.Tensor,
    sin: torch.Tensor,
    matrices: list[tuple[torch.Tensor, torch.Tensor | None]],
) -> torch.Tensor:
    """The same in a model that is split over ranks: after each half of the layer they add up their parts, of which
    the first rank's has the residual and the bias."""
    whole, output, *others = parts.products
    first, heads, eps, scaling = output.first, parts.heads, parts.eps, parts.attention.scaling
    before, _, between, _ = parts.norms
    weights, scales = ([pair[which] for pair in matrices] for which in (0, 1))
    biases = [whole.bias, output.bias if first else None]
    cache = (held.keys, held.values, held.slots.current, held.slots.filled)
    turns = getattr(held.slots, "turns", None)
    several = hidden.shape[0] > 1
    if several:
        part = texts.attention_of_texts(
            hidden, cos, sin, *cache, weights[:2], scales[:2], biases, before, heads, eps, scaling, first, turns
        )
    else:
        part = decoder_layer_attention(
            hidden,
            cos,
            sin,
            *cache,
            weights[:2],
            scales[:2],
            biases,
            before,
            heads,
            weights[2:],
            eps,
            scaling,
            first,
            turns,
            getattr(parts.attention, "sinks", None),
        )
    middle = add_up(output, part)
    if parts.experts is not None:
        return middle + add_up(output, routed_part(parts, module.post_attention_layernorm(middle)))
    up, down = others
    wide_biases = [up.bias, down.bias if first else None]
    if several:
        part = texts.feed_forward_of_texts(middle, weights[2:], scales[2:], wide_biases, between, eps, first)
    else:
        part = feed_forward(middle, weights[2:], scales[2:], wide_biases, between, eps, first)
    return add_up(down, part)


def routed_part(parts: Parts, x: torch.Tensor) -> torch.Tensor:
    """What this rank's part of a mixture of experts makes of x (1, 1, K), by the mixture's own code: the forward of its
    instance would add up as transformers does."""
    from transformers.distributed.parallel_utils import _use_local_dtensor_params

    tokens = x.view(-1, x.shape[-1])
    _, shares, chosen, *_ = parts.router(tokens)
    with _use_local_dtensor_params(parts.experts):
        return type(parts.experts).forward(parts.experts, tokens, chosen, shares).view_as(x)


def add_up(module: nn.Module, part: torch.Tensor) -> torch.Tensor:
    """The sum of all ranks' parts: by our kernel where GPUs reach each other's memory, else as `module` has it."""
    return exchange.add_up(part) if exchange.direct(part) else module.add_up(part)


@torch.library.custom_op("tokendyno_matvec::decoder_layer_attention", mutates_args=("keys", "values"))
def decoder_layer_attention(
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
    following: list[torch.Tensor],
    eps: float,
    scaling: float,
    residual: bool,
    turns: torch.Tensor | None = None,
    sinks: torch.Tensor | None = None,
) -> torch.Tensor:
    """The first half of `decoder_layer`. `residual`: whether the layer's input is added; `following`: to prefetch."""

    def empty(numbers: int) -> torch.Tensor:
        return torch.empty(numbers, dtype=hidden.dtype, device=hidden.device)

    qkv, mixed = empty(sizes(weights[0])[0]), empty(sizes(weights[1])[1])
    product(hidden, weights[0], qkv, norm=norm, eps=eps, scale=scales[0], bias=biases[0])
    own = {"turns": turns, "sinks": sinks}
    attend(qkv, cos, sin, keys, values, slot, filled, mixed, scaling, head_norms[0], head_norms[1], eps, **own)
    middle = torch.empty_like(hidden)
    asked = to_prefetch(following)
    product(
        mixed, weights[1], middle, scale=scales[1], bias=biases[1], residual=hidden if residual else None, ask=asked
    )
    return middle


@decoder_layer_attention.register_fake
def _(hidden, *args, **kwargs):
    return torch.empty_like(hidden)


@torch.library.custom_op("tokendyno_matvec::feed_forward", mutates_args=())
def feed_forward(
    middle: torch.Tensor,
    weights: list[torch.Tensor],
    scales: list[torch.Tensor | None],
    biases: list[torch.Tensor | None],
    norm: torch.Tensor,
    eps: float,
    residual: bool,
) -> torch.Tensor:
    """The second half of `decoder_layer`."""
    wide = torch.empty(sizes(weights[1])[1], dtype=middle.dtype, device=middle.device)
    out = torch.empty_like(middle)
    product(middle, weights[0], wide, norm=norm, eps=eps, scale=scales[0], bias=biases[0], gated=True)
    product(wide, weights[1], out, scale=scales[1], bias=biases[1], residual=middle if residual else None)
    return out


@feed_forward.register_fake
def _(middle, *args, **kwargs):
    return torch.empty_like(middle)


@torch.library.custom_op(
    "tokendyno_matvec::decoder_layer", mutates_args=("keys", "values", "key_scales", "value_scales")
)
def decoder_layer(
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
    scored: torch.Tensor | None = None,
    gain: float = 1.0,
    cap: float = 0.0,
    rotated: int = 0,
    pairs: bool = False,
) -> torch.Tensor:
    """Matrices in the order qkv, o, gate and up, down, of a mixture of experts qkv, o, those of the shared expert and
    its gate if there are any, router, gate and up, down; norms and shifts as of `described.Parts`.

    turns   see `attend`; not declared as mutated, since it is zero again afterwards
    gelu, offset   the activation, else SiLU; added to the weights of all norms
    gated   the third matrix is gate and up, else up alone
    gain, cap, rotated, pairs   as of `described.Parts`
    routing, between, beside   of a mixture: `Routing`, `experts.Gate`, and what `routing.selected` adds to scores
    key_scales, value_scales   of a cache in 8 bits, see `attend`
    scored  where its router's scores go, (E,) float32, with a shared expert's gate (E + 1,), or None; written in plain
            steps alone, so not declared either

    Memory is idle while attention waits and computes, so the product after it prefetches the MLP's matrices into L2.
    """

    def empty(numbers: int) -> torch.Tensor:
        return torch.empty(numbers, dtype=hidden.dtype, device=hidden.device)

    qkv, mixed = empty(sizes(weights[0])[0]), empty(sizes(weights[1])[1])
    product(
        hidden, weights[0], qkv, norm=norms[0], eps=eps, scale=scales[0], bias=biases[0], offset=offset, shift=shifts[0]
    )
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
        l1_next=weights[1].dtype == torch.uint8,
        cap=cap,
        rotated=rotated,
        pairs=pairs,
    )
    middle, out = torch.empty_like(hidden), torch.empty_like(hidden)
    if routing:
        product(mixed, weights[1], middle, scale=scales[1], bias=biases[1], residual=hidden)
        added, how, extra, shared = middle, (Routing(*routing), experts.Gate(*between)), None, None
        if len(weights) > 5:
            wide, added = empty(sizes(weights[3])[1]), torch.empty_like(middle)
            extra = weights[4] if len(weights) > 7 else None
            old = middle if extra is None else None
            product(middle, weights[2], wide, norm=norms[2], eps=eps, scale=scales[2], bias=biases[2], gated=True)
            product(wide, weights[3], added, scale=scales[3], bias=biases[3], residual=old)
            if extra is not None:
                shared, added = added.view(-1), middle
        up, down = list(zip(weights, scales, biases, strict=True))[-2:]
        per = experts.per_word(up[0])
        logits, *vector = experts.router(
            middle.view(-1), norms[2], eps, weights[-3], biases[-3], per, out=scored, extra=extra
        )
        vector = experts.up(*vector, logits, up, *how, beside)
        experts.down(*vector, logits, down, *how, added.view(-1), out.view(-1), beside, shared=shared)
        return out
    wide = empty(sizes(weights[3])[1])
    asked = to_prefetch(weights[2:4])
    vector, more = middle, {}
    if SUMMED and norms[1] is not None and products.sums(weights[2], scales[2], gated):
        vector, more = torch.empty_like(hidden), {"added": (norms[1], hidden, middle)}
        product(mixed, weights[1], vector, scale=scales[1], bias=biases[1], ask=asked)
    else:
        add(mixed, weights[1], scales[1], biases[1], hidden, middle, norms[1], eps, offset, asked, gain)
    product(
        vector,
        weights[2],
        wide,
        norm=norms[2],
        eps=eps,
        scale=scales[2],
        bias=biases[2],
        gated=gated,
        acted=not gated,
        gelu=gelu,
        offset=offset,
        shift=shifts[2],
        **more,
    )
    add(wide, weights[3], scales[3], biases[3], middle, out, norms[3], eps, offset, gain=gain)
    return out


@decoder_layer.register_fake
def _(hidden, *args, **kwargs):
    return torch.empty_like(hidden)
