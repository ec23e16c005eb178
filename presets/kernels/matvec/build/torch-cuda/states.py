"""What stands in the place of attention in layers with a state: short convolutions, and linear attention behind one,
by the gated delta rule or in a state space (Mamba 2). States do not grow, and are updated in place.

Each kernel loads its part of the state, which the step before wrote, while it waits for the product before it.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

from .description import CONVOLUTION, DELTA_RULE, STATE_SPACE, Mixer
from .parts import can_be_early

CHANNELS: tl.constexpr = tl.constexpr(128)  # of a program
_MOST_NUMBERS = 1 << 14  # of a head's state of the delta rule, which a program holds in registers
_ROWS = 16  # of a head's state in a state space, which a program holds


@triton.jit
def tokendyno_convolution(
    x,
    state,
    weight,
    bias,
    out,
    C,
    WIDTH,
    FIRST,
    TAPS: tl.constexpr,
    BIAS: tl.constexpr,
    GATED: tl.constexpr,
    EARLY: tl.constexpr,
):
    """out (B, C): the newest token's result of a convolution over time of each channel alone, CHANNELS a program.

    x         (B, WIDTH), of which C are the channels, from FIRST on, and silu is applied to the result; GATED: two
              gates and then the channels, which are multiplied with the first gate before, and the second after
    state     (B, C, TAPS): the last inputs, of which the first leaves
    weight    (C, TAPS); bias (C,) or none
    """
    channels = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    text, here = tl.program_id(1), channels < C
    kind: tl.constexpr = x.dtype.element_ty
    if EARLY:
        gdc_launch_dependents()
    at = state + (text * C + channels) * TAPS
    total = tl.zeros((CHANNELS,), tl.float32)
    for tap in tl.static_range(TAPS - 1):
        past = tl.load(at + tap + 1, mask=here, other=0.0)
        total += past.to(tl.float32) * tl.load(weight + channels * TAPS + tap, mask=here, other=0.0).to(tl.float32)
    last = tl.load(weight + channels * TAPS + TAPS - 1, mask=here, other=0.0).to(tl.float32)
    if BIAS:
        total += tl.load(bias + channels, mask=here, other=0.0).to(tl.float32)
    if EARLY:
        gdc_wait()
    x += text * WIDTH + FIRST
    new = tl.load(x + channels, mask=here, other=0.0).to(tl.float32)
    if GATED:
        second = tl.load(x + C + channels, mask=here, other=0.0).to(tl.float32)
        new = (new * tl.load(x + 2 * C + channels, mask=here, other=0.0).to(tl.float32)).to(kind)
        new = new.to(tl.float32)
    total = (total + new * last).to(kind).to(tl.float32)  # rounded where the model's own code rounds
    if GATED:
        total *= second
    else:
        total = total / (1 + tl.exp(-total))
    tl.store(out + text * C + channels, total.to(kind), mask=here)
    for tap in tl.static_range(TAPS - 1):
        past = tl.load(at + tap + 1, mask=here, other=0.0)
        tl.store(at + tap, past, mask=here)
    tl.store(at + TAPS - 1, new.to(state.dtype.element_ty), mask=here)


@triton.jit
def tokendyno_delta_rule(
    convolved,
    x,
    state,
    decay,
    shift,
    norm,
    out,
    eps,
    WIDTH,
    HK: tl.constexpr,
    HV: tl.constexpr,
    DK: tl.constexpr,
    DV: tl.constexpr,
    EARLY: tl.constexpr,
):
    """out (B, HV * DV): one step of the gated delta rule, normalized and gated, by a program for each value head.

        state = exp(g) * state;  state += k * (beta * (v - k @ state));  out = norm(q @ state) * silu(z)

    convolved  (B, 2 * HK * DK + HV * DV): queries, keys, values
    x          (B, WIDTH): as many numbers, then the gates z (HV * DV,), and of each value head beta before its sigmoid,
               and the step, with which g = -exp(decay) * softplus(step + shift)
    state      (B, HV, DK, DV) float32
    decay, shift  (HV,); norm (DV,)
    """
    head, text = tl.program_id(0), tl.program_id(1)
    source = head // (HV // HK)
    keys, values = tl.arange(0, DK), tl.arange(0, DV)
    C: tl.constexpr = 2 * HK * DK + HV * DV
    SCALE: tl.constexpr = DK**-0.5
    kind: tl.constexpr = out.dtype.element_ty
    if EARLY:
        gdc_launch_dependents()
    at = state + (text * HV + head).to(tl.int64) * DK * DV + keys[:, None] * DV + values[None, :]
    held = tl.load(at)
    rate = -tl.exp(tl.load(decay + head).to(tl.float32))
    shifted = tl.load(shift + head).to(tl.float32)
    learned = tl.load(norm + values).to(tl.float32)
    if EARLY:
        gdc_wait()
    convolved += text * C
    x += text * WIDTH + C
    query = tl.load(convolved + source * DK + keys).to(tl.float32)
    key = tl.load(convolved + (HK + source) * DK + keys).to(tl.float32)
    value = tl.load(convolved + 2 * HK * DK + head * DV + values).to(tl.float32)
    gate = tl.load(x + head * DV + values).to(tl.float32)
    beta = tl.load(x + HV * DV + head).to(tl.float32)
    beta = (1 / (1 + tl.exp(-beta))).to(kind).to(tl.float32)  # rounded where the model's own code rounds
    step = tl.load(x + HV * DV + HV + head).to(tl.float32) + shifted
    step = tl.where(step > 20, step, tl.log(1 + tl.exp(step)))
    query *= tl.rsqrt(tl.sum(query * query, 0) + 1e-6) * SCALE
    key *= tl.rsqrt(tl.sum(key * key, 0) + 1e-6)
    held *= tl.exp(rate * step)
    change = beta * (value - tl.sum(held * key[:, None], 0))
    held += key[:, None] * change[None, :]
    tl.store(at, held)
    mixed = tl.sum(held * query[:, None], 0).to(kind).to(tl.float32)
    mixed = (mixed * tl.rsqrt(tl.sum(mixed * mixed, 0) / DV + eps)).to(kind).to(tl.float32)
    mixed = (learned * mixed).to(kind).to(tl.float32) * gate / (1 + tl.exp(-gate))
    tl.store(out + (text * HV + head) * DV + values, mixed.to(kind))


@triton.jit
def tokendyno_state_space(
    convolved,
    x,
    state,
    decay,
    shift,
    past,
    out,
    WIDTH,
    GROUPS: tl.constexpr,
    HEADS: tl.constexpr,
    N: tl.constexpr,
    P: tl.constexpr,
    ROWS: tl.constexpr,
    EARLY: tl.constexpr,
):
    """out (B, HEADS * P): one step in a state space, gated and not yet normalized, by a program for ROWS of each head.

        state = exp(-exp(decay) * dt) * state + dt * v b^T;  out = (state @ c + past * v) * silu(z)

    convolved  (B, HEADS * P + 2 * GROUPS * N): v, and b and c of each group
    x          (B, WIDTH): the gates z (HEADS * P,), as many numbers as are convolved, and of each head the step, with
               which dt = softplus(step + shift)
    state      (B, HEADS, P, N)
    decay, shift, past  (HEADS,)
    """
    head, text = tl.program_id(0), tl.program_id(2)
    group = head // (HEADS // GROUPS)
    rows, columns = tl.program_id(1) * ROWS + tl.arange(0, ROWS), tl.arange(0, N)
    C: tl.constexpr = HEADS * P + 2 * GROUPS * N
    kind: tl.constexpr = out.dtype.element_ty
    if EARLY:
        gdc_launch_dependents()
    at = state + (text * HEADS + head).to(tl.int64) * P * N + rows[:, None] * N + columns[None, :]
    held = tl.load(at).to(tl.float32)
    rate = -tl.exp(tl.load(decay + head).to(tl.float32))
    shifted = tl.load(shift + head).to(kind).to(tl.float32)
    share = tl.load(past + head).to(tl.float32)
    if EARLY:
        gdc_wait()
    convolved += text * C
    x += text * WIDTH
    value = tl.load(convolved + head * P + rows).to(tl.float32)
    written = tl.load(convolved + HEADS * P + group * N + columns).to(tl.float32)
    read = tl.load(convolved + HEADS * P + (GROUPS + group) * N + columns).to(tl.float32)
    gate = tl.load(x + head * P + rows).to(tl.float32)
    step = (tl.load(x + HEADS * P + C + head).to(tl.float32) + shifted).to(kind).to(tl.float32)
    step = tl.where(step > 20, step, tl.log(1 + tl.exp(step))).to(kind).to(tl.float32)
    written = (step * written).to(kind).to(tl.float32)  # rounded where the model's own code rounds
    held = held * tl.exp(rate * step) + (value[:, None] * written[None, :]).to(kind).to(tl.float32)
    tl.store(at, held.to(state.dtype.element_ty))
    mixed = (tl.sum(held * read[None, :], 1) + share * value).to(kind).to(tl.float32)
    mixed *= gate / (1 + tl.exp(-gate))
    tl.store(out + (text * HEADS + head) * P + rows, mixed.to(kind))


def mix(
    x: torch.Tensor,
    convolutions: torch.Tensor,
    state: torch.Tensor | None,
    mixer: Mixer,
    tensors: list[torch.Tensor | None],
    eps: float,
) -> torch.Tensor:
    """(B, 1, WIDTH), what the layer's first product gave, -> (B, 1, K), what its second one takes; both states are
    updated in place.

    convolutions, state   (B, channels, taps), and what linear attention keeps, see its kernels
    tensors   weight and bias of the convolution; decay and shift of the state, and the delta rule's norm, or of a state
              space what of each value passes by it
    eps       of that norm
    """
    texts, width, early = x.shape[0], x.shape[-1], can_be_early()
    weight, bias, decay, shift, last = tensors
    convolved = x.new_empty(texts, 1, mixer.channels)
    more = {"EARLY": early, "launch_pdl": early}
    values = mixer.heads * mixer.value_size
    tokendyno_convolution[(triton.cdiv(mixer.channels, CHANNELS.value), texts)](
        x,
        convolutions,
        weight,
        weight if bias is None else bias,
        convolved,
        mixer.channels,
        width,
        values if mixer.kind == STATE_SPACE else 0,
        TAPS=convolutions.shape[-1],
        BIAS=bias is not None,
        GATED=mixer.kind == CONVOLUTION,
        num_warps=4,
        **more,
    )
    if mixer.kind == CONVOLUTION:
        return convolved
    out = x.new_empty(texts, 1, values)
    given, sizes = (convolved, x, state, decay, shift, last, out), mixer[2:]
    if mixer.kind == DELTA_RULE:
        tokendyno_delta_rule[(mixer.heads, texts)](*given, eps, width, *sizes, num_warps=8, **more)
    else:
        rows = min(mixer.value_size, _ROWS)
        grid = mixer.heads, mixer.value_size // rows, texts
        tokendyno_state_space[grid](*given, width, *sizes, ROWS=rows, num_warps=4, **more)
    return out


def fits(mixer: Mixer, cached: object, tensors: tuple[torch.Tensor | None, ...]) -> bool:
    """Whether the kernels compute it, with the states of this layer of a cache, which a prompt has filled. In code that
    torch.compile makes they are untried."""
    sizes = mixer.key_size, mixer.value_size
    large = mixer.kind == DELTA_RULE and sizes[0] * sizes[1] > _MOST_NUMBERS
    if large or any(size & (size - 1) for size in sizes) or torch.compiler.is_compiling():
        return False
    known = cached.has_previous_state[0] and not cached.record_past
    known = known and cached.conv_states[0].shape[-1] == tensors[0].shape[-1]
    return known and all(one.is_contiguous() for one in states_of(cached))


def states_of(cached: object) -> list[torch.Tensor]:
    """That of the convolution, and that of linear attention where there is one."""
    return [one[0] for one in (cached.conv_states, cached.recurrent_states) if one[0] is not None]
