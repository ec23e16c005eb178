"""A decoder layer in the terms of the kernels: one description for the layers of every architecture."""

from typing import NamedTuple

import torch
from torch import nn
from transformers.activations import GELUTanh, NewGELUActivation, SiLUActivation
from transformers.pytorch_utils import Conv1D

_SILU, _GELU = (nn.SiLU, SiLUActivation), (GELUTanh, NewGELUActivation)
_NONE: tuple[None, ...] = (None,) * 4
_LOGITS = ("GptOssTopKRouter", "MixtralTopKRouter")
_PROBABILITIES = ("Qwen2MoeTopKRouter", "Qwen3MoeTopKRouter", "OlmoeTopKRouter")
_SIGMOIDS = ("Glm4MoeTopkRouter", "DeepseekV3TopkRouter")

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


class Parts(NamedTuple):
    """What a layer consists of.

    attention   the module with its sizes and scaling
    products    linear layers: q, k and v as one; the output projection; gate and up as one, or up alone; down. Of a
                mixture without a shared expert the first two; with one that has a gate, that too
    norms       weights of the norms before and after attention, before and after the MLP; None where there is none
    eps, offset   of all norms, those of heads included; what is added to their weights
    heads       weights of the norms of queries and keys, or None
    gelu        the activation is GELU in its tanh form, else SiLU
    router, experts   of a mixture of experts, or None
    shifts      biases of the norms, where these are LayerNorms
    gated       whether there is a gate
    """

    attention: nn.Module
    products: tuple[nn.Module, ...]
    norms: list[torch.Tensor | None]
    eps: float
    offset: float
    heads: list[torch.Tensor | None]
    gelu: bool = False
    router: nn.Module | None = None
    experts: nn.Module | None = None
    shifts: tuple[torch.Tensor | None, ...] = _NONE
    gated: bool = True


def describe(module: nn.Module) -> Parts | None:
    """The parts of a decoder layer; None where its projections are not fused, or no kernel has its activation."""
    if hasattr(module, "ln_1"):
        return _describe_gpt2(module)
    attention, mlp = module.self_attn, module.mlp
    if not hasattr(attention.q_proj, "whole"):
        return None
    names = ("input_layernorm", "", "post_attention_layernorm", "")
    if hasattr(module, "post_feedforward_layernorm"):  # it normalizes what it adds to its input
        names = (
            "input_layernorm",
            "post_attention_layernorm",
            "pre_feedforward_layernorm",
            "post_feedforward_layernorm",
        )
    norms = [getattr(module, name, None) for name in names]
    one = norms[3] or norms[2]
    eps, offset = (one.eps, 1.0) if hasattr(one, "eps") else (one.variance_epsilon, 0.0)  # Gemma's adds 1
    heads = [getattr(attention, name, None) for name in ("q_norm", "k_norm")]
    products, norms, heads = (attention.q_proj.whole, attention.o_proj), _weights(norms), _weights(heads)
    if hasattr(mlp, "experts"):
        return _of_mixture(Parts(attention, products, norms, eps, offset, heads), mlp)
    if not hasattr(mlp.gate_proj, "whole") or type(mlp.act_fn) not in (*_SILU, *_GELU):
        return None
    products += (mlp.gate_proj.whole, mlp.down_proj)
    return Parts(attention, products, norms, eps, offset, heads, type(mlp.act_fn) in _GELU)


def routing_of(router: nn.Module) -> Routing | None:
    """How a router chooses; None where the kernels do not know its kind. Mixtral's shares, divided by their sum, are a
    softmax over the chosen logits as those of gpt-oss are; others' are where they are `norm_topk_prob`."""
    name, top = type(router).__name__, router.top_k
    if name in _LOGITS:
        return Routing(top)
    if name in _PROBABILITIES:
        return Routing(top, AMONG if router.norm_topk_prob else OVER)
    if name not in _SIGMOIDS:
        return None
    groups, number = router.num_group, router.num_experts
    if groups > 1 and (number & (number - 1) or groups & (groups - 1) or number < 2 * groups):
        return None
    mode = SIGMOID_NORMED if router.norm_topk_prob else SIGMOID
    return Routing(top, mode, groups, router.topk_group)


def _of_mixture(parts: Parts, mlp: nn.Module) -> Parts | None:
    """A layer with these parts and a mixture of experts; None for a router, or a shared expert, that no kernel has."""
    router = mlp.router if hasattr(mlp, "router") else mlp.gate
    shared = getattr(mlp, "shared_experts", None) or getattr(mlp, "shared_expert", None)
    if routing_of(router) is None or getattr(parts.attention.config, "clip_qkv", None):
        return None
    if shared is not None:
        if not hasattr(shared.gate_proj, "whole") or type(shared.act_fn) not in _SILU:
            return None
        gate = (mlp.shared_expert_gate,) if hasattr(mlp, "shared_expert_gate") else ()
        parts = parts._replace(products=(*parts.products, shared.gate_proj.whole, shared.down_proj, *gate))
    return parts._replace(router=router, experts=mlp.experts)


def _describe_gpt2(module: nn.Module) -> Parts | None:
    """One with LayerNorms, without rotation and gate, whose matrices are stored transposed."""
    attention, mlp = module.attn, module.mlp
    products = (attention.c_attn, attention.c_proj, mlp.c_fc, mlp.c_proj)
    crossed = hasattr(module, "crossattention")
    if crossed or type(mlp.act) not in (*_SILU, *_GELU) or any(type(one) is not Conv1D for one in products):
        return None
    before, between = module.ln_1, module.ln_2
    return Parts(
        attention,
        products,
        _weights([before, None, between, None]),
        before.eps,
        0.0,
        [None, None],
        type(mlp.act) in _GELU,
        shifts=(before.bias, None, between.bias, None),
        gated=False,
    )


def rows_of(product: nn.Module) -> torch.Tensor:
    """The weight of a linear layer, (rows, columns), each row a result's: a Conv1D's is (columns, rows)."""
    return product.weight.t() if type(product) is Conv1D else product.weight


def _weights(norms: list[nn.Module | None]) -> list[torch.Tensor | None]:
    return [None if norm is None else norm.weight for norm in norms]
