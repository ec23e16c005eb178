"""A decoder layer in the terms of the kernels: one description for the layers of every architecture."""

from typing import NamedTuple

import torch
from torch import nn
from transformers.activations import GELUTanh, NewGELUActivation, ReLUSquaredActivation, SiLUActivation
from transformers.pytorch_utils import Conv1D

SILU, GELU, RELU2 = range(3)
ACTIVATIONS = {
    **dict.fromkeys((nn.SiLU, SiLUActivation), SILU),
    **dict.fromkeys((GELUTanh, NewGELUActivation), GELU),
    ReLUSquaredActivation: RELU2,
}
_NONE: tuple[None, ...] = (None,) * 4
_NORMS = (
    ("input_layernorm", "", "post_attention_layernorm", ""),
    ("input_layernorm", "post_self_attn_layernorm", "post_attention_layernorm", "post_mlp_layernorm"),
    ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"),
    ("operator_norm", "", "ffn_norm", ""),
    ("input_layernorm", "", "pre_ff_layernorm", ""),
    ("input_layernorm", "post_norm1", "post_attention_layernorm", "post_norm2"),
)
"""What architectures call the norms before and after attention, before and after the MLP. A layer's own is the row
whose last norm it has, else the first; it need not have the others."""
_PAIRS = ("GlmAttention", "Glm4Attention", "HeliumAttention", "Ernie4_5Attention", "DeepseekV2Attention")
"""Attention that rotates each even dimension of a head with the next one: nothing else tells."""
_GATED_QUERIES = ("Qwen3NextAttention", "Qwen3_5Attention", "Qwen3_5MoeAttention")
"""Attention whose projection of queries gives a gate behind each."""
_ORDERING = "fix_query_key_value_ordering"
"""Method of Qwen3-Next's linear attention, whose rows heads of keys interleave, until `fuse` sorts them."""
_GROUPED = ("NemotronHRMSNormGated", "FalconH1RMSNormGated")
"""Norms of what a state space gives, each group of heads by itself."""
FOLDED = "tokendyno_folded"
"""Attribute of a layer of Falcon-H1 whose multipliers are part of its matrices: `fuse` sees to it."""
_LOGITS = ("GptOss", "Mixtral", "Qwen3_5Moe")
_PROBABILITIES = ("Qwen2Moe", "Qwen3Moe", "Qwen3Next", "Olmoe", "Mellum")
_SIGMOIDS = ("Glm4Moe", "DeepseekV3", "Glm4MoeLite", "NemotronH", "Dots1", "SolarOpen", "Lfm2Moe", "MiniMaxM2")
"""How the names of routers' classes begin, before TopKRouter: of softmax over those chosen, over all, of sigmoids."""
_CORRECTIONS = ("e_score_correction_bias", "expert_bias")
"""What is added to scores for the choice alone: buffers of a router or of the mixture around it."""

AMONG, OVER, SIGMOID, SIGMOID_NORMED, GIVEN = range(5)


class Routing(NamedTuple):
    """How experts are chosen and what they are multiplied with, in numbers, which an operator takes as a list.

    top     experts of a token
    mode    softmax AMONG those chosen, or OVER all; SIGMOID, or divided by their sum; GIVEN by somebody else
    groups, kept   experts come in so many groups, of which those with the largest sums of two are kept
    """

    top: int
    mode: int = AMONG
    groups: int = 1
    kept: int = 1


CONVOLUTION, DELTA_RULE, STATE_SPACE, LATENTS = range(4)


class Mixer(NamedTuple):
    """What stands in the place of attention, in numbers, which an operator takes as a list.

    kind        a CONVOLUTION between two gates; or linear attention after one: by the gated DELTA_RULE, or in a
                STATE_SPACE (Mamba 2); or attention to LATENTS, which keeps slots as attention does
    channels    that are convolved; or numbers of a latent
    groups, heads   heads of keys and of values; in a state space groups, and heads
    key_size, value_size   numbers of a head of either, of keys those that are not rotated; in a state space of a
                state, and of a head
    """

    kind: int
    channels: int
    groups: int = 1
    heads: int = 1
    key_size: int = 1
    value_size: int = 1


class Parts(NamedTuple):
    """What a layer consists of.

    attention   the module with its sizes and scaling, or the one in its place; of an MLP or a mixture alone the layer
    products    linear layers: q, k and v as one; the output projection; gate and up as one, or up alone; down. Of a
                mixture without a shared expert the first two; with one that has a gate, that too. In a layer that is
                attention, a mixer or an MLP alone its two, or those of a shared expert
    norms       weights of the norms before and after attention, before and after the MLP; None where there is none
    eps, offset   of all norms, those of heads included; what is added to their weights
    heads       weights of the norms of queries and keys, or None
    activation  SILU, GELU in its tanh form, or the square of ReLU
    router, experts   of a mixture of experts, or None
    correction  what is added to a router's scores where experts are chosen, or None
    shifts      biases of the norms, where these are LayerNorms
    gated       whether there is a gate
    gain        by which attention and the MLP are multiplied before they are added
    cap         of attention scores, or 0
    rotated     dimensions of a head that are rotated, from the first on; 0: none
    pairs       each is rotated with its neighbour, not with the one half of them away
    unscaled    tokens whose queries are not scaled by their position; 0: all
    opened      attention's output is multiplied with the sigmoid of a gate that comes with each query
    mixer       what stands in the place of attention; None: attention
    beside      of a mixer that gets what attention gets, and whose result is added too (Falcon-H1)
    tensors     of a mixer: see `states.mix`; of latents the matrix of their keys and values and their norm, and those
                of queries that come from a latent too, or None
    inner_eps   of the norms of latents
    between     weights of a norm before the output projection, (groups, size) of one in groups; or None
    """

    attention: nn.Module
    products: tuple[nn.Module, ...]
    norms: tuple[torch.Tensor | None, ...] = _NONE
    eps: float = 0.0
    offset: float = 0.0
    heads: tuple[torch.Tensor | None, ...] = _NONE[:2]
    activation: int = SILU
    router: nn.Module | None = None
    experts: nn.Module | None = None
    correction: torch.Tensor | None = None
    shifts: tuple[torch.Tensor | None, ...] = _NONE
    gated: bool = True
    gain: float = 1.0
    cap: float = 0.0
    rotated: int = 0
    pairs: bool = False
    unscaled: int = 0
    opened: bool = False
    mixer: Mixer | None = None
    tensors: tuple[torch.Tensor | None, ...] = ()
    inner_eps: float = 0.0
    between: torch.Tensor | None = None
    beside: "Parts | None" = None

    def has_slots(self) -> bool:
        """Whether the cache keeps something of each token, not a state."""
        return self.mixer is None or self.mixer.kind == LATENTS

    def can_be_shared(self) -> bool:
        """Whether kernels compute it where ranks share the layer."""
        added = self.norms[1] is not None or self.norms[3] is not None  # each rank has a part of what they normalize
        plain = self.gated and self.activation == SILU and not self.offset and self.shifts[0] is None and not added
        attends = self.mixer is None and self.beside is None and not self.opened and not self.cap and not self.pairs
        return plain and attends and self.gain == 1 and self.rotated == self.attention.head_dim


def describe(module: nn.Module) -> Parts | None:
    """The parts of a decoder layer; None where its projections are not fused, or no kernel has its activation."""
    if hasattr(module, "ln_1"):
        return _describe_gpt2(module)
    if hasattr(module, "mixer"):
        return _describe_alone(module)
    names = next((row for row in _NORMS[:0:-1] if hasattr(module, row[3] or row[2])), _NORMS[0])
    norms = [getattr(module, name, None) for name in names]
    last = norms[2] or norms[3]
    eps, offset = (last.eps, 1.0) if hasattr(last, "eps") else (last.variance_epsilon, 0.0)  # Gemma's adds 1
    common, attention = {"norms": _weights(norms), "eps": eps, "offset": offset}, getattr(module, "self_attn", None)
    if attention is None:
        parts = _describe_mixer(module)
    elif hasattr(attention, "kv_a_proj_with_mqa"):
        parts = _describe_latents(attention)
    else:
        parts = _describe_attention(attention)
    if parts is None or parts.products[0] is None:
        return None
    if parts.mixer is None and getattr(module, "mamba", None) is not None:
        if not hasattr(module, FOLDED) or (beside := _describe_mixer(module)) is None:
            return None
        parts = parts._replace(beside=beside._replace(**common))
    gain = getattr(module, "residual_multiplier", getattr(module, "residual_scale", 1.0))
    parts = parts._replace(**common, gain=gain)
    mlp = getattr(module, "mlp", None) or getattr(module, "feed_forward", None)
    if hasattr(mlp, "experts"):
        return _of_mixture(parts, mlp)
    wide, down, act = feed_forward(module.shared_mlp if mlp is None else mlp)
    if wide is None or type(act) not in ACTIVATIONS:
        return None
    products, gated = (*parts.products, wide, down), wide is not getattr(mlp, "up_proj", None)
    return parts._replace(products=products, activation=ACTIVATIONS[type(act)], gated=gated)


def _describe_alone(module: nn.Module) -> Parts | None:
    """A layer of Nemotron-H: attention without rotation, a mixer, or an MLP or a mixture without gates."""
    mixer = module.mixer
    common = {"norms": _weights([module.norm, None, None, None]), "eps": module.norm.variance_epsilon}
    if module.block_type == "linear_attention":
        parts = _describe_mixer(module)
        return None if parts is None else parts._replace(**common)
    if module.block_type == "full_attention":
        parts = _describe_attention(mixer)._replace(**common, rotated=0)
        return None if parts.products[0] is None else parts
    mlp = getattr(mixer, "shared_experts", mixer)
    act = ACTIVATIONS.get(type(mlp.act_fn))
    parts = Parts(module, (mlp.up_proj, mlp.down_proj), **common, activation=act, gated=False)
    if mlp is mixer or act is None:
        return None if act is None else parts
    if type(mixer.fc1_latent_proj) is not nn.Identity:
        return None
    return _routed(parts._replace(norms=(None, None, parts.norms[0], None)), mixer, mixer.gate)


def _describe_attention(attention: nn.Module) -> Parts:
    """The parts of attention; the first product is None where it is not fused."""
    names = ("q_layernorm", "k_layernorm") if hasattr(attention, "q_layernorm") else ("q_norm", "k_norm")
    output = attention.o_proj if hasattr(attention, "o_proj") else attention.out_proj
    config, kind = attention.config, type(attention).__name__
    angles = getattr(config, "rope_parameters", None) or {}
    turned = int(attention.head_dim * angles.get("partial_rotary_factor", 1.0))
    rope = getattr(config, "position_embedding_type", "rope") == "rope"  # None where there are no positions
    if kind == "Exaone4Attention":
        rope = attention.is_sliding or attention.sliding_window is None
    elif kind == "GraniteSWAAttention":
        rope = bool(config.layer_rope_theta[attention.layer_idx])
    return Parts(
        attention,
        (_joined(attention, "qkv_proj", "q_proj"), output),
        heads=_weights([getattr(attention, name, None) for name in names]),
        cap=getattr(attention, "attn_logit_softcapping", None) or 0.0,
        rotated=turned if rope and getattr(attention, "use_rope", True) else 0,
        pairs=kind in _PAIRS,
        unscaled=angles.get("original_max_position_embeddings", 0) if angles.get("llama_4_scaling_beta") else 0,
        opened=kind in _GATED_QUERIES,
    )


def _describe_latents(attention: nn.Module) -> Parts:
    """The parts of attention to latents; the first product is None where it is not fused."""
    late = attention.q_lora_rank is not None
    after = (attention.q_b_proj.weight, attention.q_a_layernorm.weight) if late else (None, None)
    sizes = attention.kv_lora_rank, 1, attention.num_heads, attention.qk_nope_head_dim, attention.v_head_dim
    known = type(attention).__name__ in _PAIRS
    return Parts(
        attention,
        (_joined(attention, "qkv_proj", "q_a_proj" if late else "q_proj"), attention.o_proj),
        rotated=attention.qk_rope_head_dim,
        pairs=known or bool(getattr(attention.config, "rope_interleave", False)),
        mixer=Mixer(LATENTS, *sizes),
        tensors=(attention.kv_b_proj.weight, attention.kv_a_layernorm.weight, *after),
        inner_eps=attention.kv_a_layernorm.variance_epsilon,
    )


def _describe_mixer(module: nn.Module) -> Parts | None:
    """The parts of what stands in the place of attention; None where no kernel computes it."""
    if hasattr(module, "conv"):
        mixer = module.conv
        products, conv, more = (mixer.in_proj, mixer.out_proj), mixer.conv, (None, None, None)
        sizes = Mixer(CONVOLUTION, conv.in_channels)
    elif hasattr(module, "linear_attn"):
        mixer = module.linear_attn
        if hasattr(mixer, _ORDERING) and _ORDERING not in vars(mixer):  # `fuse` replaces it where it sorts rows
            return None
        first = mixer.in_proj_qkvz if hasattr(mixer, "in_proj_qkvz") else mixer.in_proj_qkv
        products, conv = (getattr(first, "whole", None), mixer.out_proj), mixer.conv1d
        more = mixer.A_log, mixer.dt_bias, mixer.norm.weight
        heads = mixer.num_k_heads, mixer.num_v_heads, mixer.head_k_dim, mixer.head_v_dim
        sizes = Mixer(DELTA_RULE, conv.in_channels, *heads)
    else:
        mixer = module.mamba if hasattr(module, "mamba") else module.mixer
        products, conv = (mixer.in_proj, mixer.out_proj), mixer.conv1d
        more = mixer.A_log, mixer.dt_bias, mixer.D
        sizes = Mixer(
            STATE_SPACE, conv.in_channels, mixer.n_groups, mixer.num_heads, mixer.ssm_state_size, mixer.head_dim
        )
    norm = getattr(mixer, "norm", None)
    if getattr(mixer, "activation", "silu") != "silu" or getattr(norm, "norm_before_gate", False):
        return None
    between = getattr(norm, "weight", None) if sizes.kind == STATE_SPACE else None  # of Falcon-H1 maybe an nn.Identity
    if between is not None and type(norm).__name__ in _GROUPED:
        between = between.view(sizes.groups, -1)
    tensors = conv.weight.squeeze(1), conv.bias, *more
    return Parts(mixer, products, mixer=sizes, tensors=tensors, between=between)


def feed_forward(mlp: nn.Module) -> tuple[nn.Module | None, nn.Module, nn.Module]:
    """Of an MLP gate and up as one, None where they are not fused, or up alone; down; and the activation."""
    if hasattr(mlp, "input_linear"):
        return mlp.input_linear, mlp.output_linear, mlp.activation
    if hasattr(mlp, "w1"):
        return getattr(mlp.w1, "whole", None), mlp.w2, nn.SiLU()
    act = getattr(mlp, "act_fn", None) or mlp.activation_fn
    if not hasattr(mlp, "gate_up_proj") and not hasattr(mlp, "gate_proj"):
        return mlp.up_proj, mlp.down_proj, act
    first = "up_proj" if type(mlp).__name__ == "FalconH1MLP" else "gate_proj"
    return _joined(mlp, "gate_up_proj", first), mlp.down_proj, act


def _joined(module: nn.Module, name: str, first: str) -> nn.Module | None:
    """Several linear layers as one: as they come, under this name, or fused where the first of them was."""
    return getattr(module, name) if hasattr(module, name) else getattr(getattr(module, first), "whole", None)


def routing_of(router: nn.Module) -> Routing | None:
    """How a router chooses; None where the kernels do not know its kind. Mixtral's shares, divided by their sum, are a
    softmax over the chosen logits as those of gpt-oss are; others' are where they are `norm_topk_prob`."""
    name, top = type(router).__name__[: -len("TopKRouter")], router.top_k
    if name in _LOGITS:
        return Routing(top)
    if name == "DeepseekV2" and router.topk_method == "greedy":
        return Routing(top, OVER)
    if name in _PROBABILITIES:
        return Routing(top, AMONG if router.norm_topk_prob else OVER)
    if name not in _SIGMOIDS:
        return None
    groups, number = getattr(router, "num_group", 1), router.num_experts
    if groups > 1 and (number & (number - 1) or groups & (groups - 1) or number < 2 * groups):
        return None
    mode = SIGMOID_NORMED if getattr(router, "norm_topk_prob", True) else SIGMOID
    return Routing(top, mode, groups, getattr(router, "topk_group", 1))


def _of_mixture(parts: Parts, mlp: nn.Module) -> Parts | None:
    """A layer with these parts and a mixture of experts; None for a router, or a shared expert, that no kernel has."""
    router = mlp.router if hasattr(mlp, "router") else mlp.gate
    shared = getattr(mlp, "shared_experts", None) or getattr(mlp, "shared_expert", None)
    if getattr(getattr(parts.attention, "config", None), "clip_qkv", None):
        return None
    if shared is not None:
        if not hasattr(shared.gate_proj, "whole") or ACTIVATIONS.get(type(shared.act_fn)) != SILU:
            return None
        gate = (mlp.shared_expert_gate,) if hasattr(mlp, "shared_expert_gate") else ()
        parts = parts._replace(products=(*parts.products, shared.gate_proj.whole, shared.down_proj, *gate))
    return _routed(parts, mlp, router)


def _routed(parts: Parts, mixture: nn.Module, router: nn.Module) -> Parts | None:
    """A layer with these parts, router and experts; None for a router that no kernel has."""
    routing, places = routing_of(router), [(one, name) for one in (router, mixture) for name in _CORRECTIONS]
    correction = next((getattr(one, name) for one, name in places if hasattr(one, name)), None)
    if routing is None or (routing.mode >= SIGMOID and correction is None):
        return None
    return parts._replace(router=router, experts=mixture.experts, correction=correction)


def _describe_gpt2(module: nn.Module) -> Parts | None:
    """One with LayerNorms, without rotation and gate, whose matrices are stored transposed."""
    attention, mlp = module.attn, module.mlp
    products = (attention.c_attn, attention.c_proj, mlp.c_fc, mlp.c_proj)
    crossed = hasattr(module, "crossattention")
    if crossed or type(mlp.act) not in ACTIVATIONS or any(type(one) is not Conv1D for one in products):
        return None
    before, between = module.ln_1, module.ln_2
    return Parts(
        attention,
        products,
        _weights([before, None, between, None]),
        before.eps,
        activation=ACTIVATIONS[type(mlp.act)],
        shifts=(before.bias, None, between.bias, None),
        gated=False,
    )


def rows_of(product: nn.Module) -> torch.Tensor:
    """The weight of a linear layer, (rows, columns), each row a result's: a Conv1D's is (columns, rows)."""
    return product.weight.t() if type(product) is Conv1D else product.weight


def _weights(norms: list[nn.Module | None]) -> tuple[torch.Tensor | None, ...]:
    return tuple(getattr(norm, "weight", None) for norm in norms)
