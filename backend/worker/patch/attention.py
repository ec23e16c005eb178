"""Attention: `sdpa-gqa`, which is SDPA for grouped queries without copied key and value heads; kernels of the Hub; and
attention without its sinks, which is another model than the one that was trained."""

from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import causal_mask_function, sdpa_mask
from transformers.modeling_flash_attention_utils import lazy_import_flash_attention
from transformers.utils import is_tracing

from tokendyno.backend.errors import InputError
from tokendyno.backend.worker.prove.compile_log import first_line

KEYS = "tokendyno_keys"
"""Attribute of a mask that is only causal: how many keys its last query attends to."""


def grouped_attention(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: Any = None, **kwargs: Any
) -> Any:
    """Query (B, H, Q, D), key and value (B, K, S, D): each key head serves a group of H / K query heads.

    With a mask, which a static cache always has, transformers' sdpa copies keys and values H / K times. The fused CPU
    kernel takes groups and a mask together, and no fused CUDA kernel does: there `one_query` computes a single query,
    a flash kernel without the mask a later chunk of a prompt, and for others the copies cost little beside the rest.
    """
    groups = query.shape[1] // key.shape[1]
    keys = getattr(attention_mask, KEYS, 0)
    if keys and _takes_flash(query) and not kwargs.get("dropout"):
        return chunk_of_prompt(query, key[:, :, :keys], value[:, :, :keys], scaling).transpose(1, 2), None
    usual = groups == 1 or attention_mask is None or attention_mask.shape[1] != 1 or kwargs.get("softcap") is not None
    if usual or kwargs.get("position_bias") is not None or (query.is_cuda and query.shape[2] > 1):
        return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)
    if query.is_cuda:
        out = one_query(query, key, value, attention_mask, query.shape[-1] ** -0.5 if scaling is None else scaling)
    else:
        out = torch.nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=attention_mask, scale=scaling, enable_gqa=True
        )
    return out.transpose(1, 2).contiguous(), None


def one_query(query: Any, key: Any, value: Any, mask: Any, scale: float) -> Any:
    """Attention of one query (B, H, 1, D) with a mask (B, 1, 1, S), boolean or additive -> (B, H, 1, D). Compiled,
    elementwise products and sums become reductions that read each key and value once; eagerly they would write their
    intermediate results to memory, so two matrix products are used instead."""
    groups = query.shape[1] // key.shape[1]
    rows = query.unflatten(1, (-1, groups)).squeeze(3)  # (B, K, G, D)
    compiled = torch.compiler.is_compiling()
    if compiled:
        scores = (rows.unsqueeze(3).float() * key.unsqueeze(2).float()).sum(-1) * scale  # (B, K, G, S)
    else:
        scores = torch.matmul(rows, key.transpose(2, 3)).float() * scale
    scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask.float()
    weights = torch.nn.functional.softmax(scores, dim=-1)
    if compiled:
        out = (weights.unsqueeze(-1) * value.unsqueeze(2).float()).sum(3).to(query.dtype)
    else:
        out = torch.matmul(weights.to(value.dtype), value)
    return out.flatten(1, 2).unsqueeze(2)


def chunk_of_prompt(query: Any, key: Any, value: Any, scaling: float | None) -> Any:
    """Causal attention of the last Q of S tokens, query (B, H, Q, D), to all S, by a flash kernel."""
    flash = torch.ops.aten._scaled_dot_product_flash_attention
    return flash(query, key, value, 0.0, True, return_debug_mask=False, scale=scaling)[0]


def _takes_flash(query: Any) -> bool:
    head = query.shape[-1]
    return query.is_cuda and query.dtype in (torch.bfloat16, torch.float16) and head <= 256 and head % 8 == 0


def grouped_mask(**keywords: Any) -> Any:
    """The mask of sdpa. One that is only causal, of a later chunk of a prompt, gets the attribute `KEYS`."""
    mask, length, padding = sdpa_mask(**keywords), keywords["q_length"], keywords.get("attention_mask")
    causal = keywords.get("mask_function", causal_mask_function) is causal_mask_function
    causal = causal and keywords.get("allow_is_causal_skip", True) and keywords.get("kv_offset", 0) == 0
    if mask is None or not causal or length == 1 or not mask.is_cuda or is_tracing(mask):
        return mask
    keys = int(keywords.get("q_offset", 0)) + length
    if keys <= mask.shape[-1] and (padding is None or bool(padding[:, :keys].all())):
        setattr(mask, KEYS, keys)
    return mask


def register_grouped_attention() -> None:
    AttentionInterface.register("sdpa-gqa", grouped_attention)
    AttentionMaskInterface.register("sdpa-gqa", grouped_mask)


def load_kernel(name: str) -> None:
    """Load any attention kernel of the Hub, or its local copy, before a model asks for it. InputError if that fails, or
    if transformers cannot call it."""
    try:
        lazy_import_flash_attention(name, allow_all_kernels=True)
    except Exception as error:
        raise InputError(
            f"The kernel {name} cannot be used as attention: {first_line(str(error)).rstrip('.')}. transformers 5.22 "
            "takes kernels with flash_attn_varlen_func, sparse_atten_func or flash_attn_forward. Set attention=auto."
        ) from error


def drop_sinks(model: Any) -> None:
    """Let attention compute without its sinks, learned scores that take a share of the softmax: at the least number of
    the dtype that share is 0."""
    for module in model.modules():
        sinks = getattr(module, "sinks", None)
        if isinstance(sinks, torch.nn.Parameter):
            sinks.data.fill_(torch.finfo(sinks.dtype).min)
