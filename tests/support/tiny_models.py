"""Every architecture of the catalogue in small: random weights whose greedy text is not one word over and over."""

import functools
import json
from typing import Any

from tokendyno.backend.models.catalogue import catalogue
from tokendyno.backend.models.families import FAMILIES

WINDOW = 8
_SHAPE: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_MIXED = {"sliding_window": WINDOW, "layer_types": ["sliding_attention"] * 3 + ["full_attention"]}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama": _SHAPE,
    "qwen3": _SHAPE,
    "mistral": _SHAPE | {"sliding_window": WINDOW},
    "olmo3": _SHAPE | _MIXED,
    "gemma3_text": _SHAPE | _MIXED,
    "gpt_oss": _SHAPE | {
        "sliding_window": WINDOW, "num_local_experts": 4, "num_experts_per_tok": 2,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e4},
    },
    "gpt2": {"vocab_size": 97, "n_embd": 32, "n_head": 4, "n_layer": 4, "n_positions": 256, "bos_token_id": 1,
             "eos_token_id": 2},
}  # fmt: skip
OTHERS: dict[str, dict[str, Any]] = {
    "gemma2": _SHAPE | {"sliding_window": WINDOW, "query_pre_attn_scalar": 8},
    "phi3": _SHAPE,
    "qwen3_moe": _SHAPE | {"moe_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2},
    "mixtral": _SHAPE | {"num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen2": _SHAPE,
    "smollm3": _SHAPE,
    "granite": _SHAPE | {"residual_multiplier": 0.5, "attention_multiplier": 0.2},
}
"""Architectures that fewer tests go through."""
STATES = ("lfm2", "qwen3_5_text", "qwen3_next", "granitemoehybrid", "bamba", "falcon_h1", "nemotron_h")
MORE_STATES = ("lfm2_moe", "jamba", "zamba2", "zaya", "kimi_linear", "olmo_hybrid", "bailing_hybrid")
"""Those that keep states of convolutions or linear attention: what they are in small is in tools/tiny_config.py."""
LATENTS = ("deepseek_v2", "deepseek_v3", "gemma3n_text", "gemma4_text")
"""Likewise, those whose keys are latents, or shared between layers."""
DECODERS = {json.loads(entry.config)["model_type"] for entry in catalogue() if entry.kind == "decoder"}
assert DECODERS & set(FAMILIES) <= set(CONFIGS | OTHERS), "an architecture of the catalogue is missing here"


@functools.cache
def tiny(architecture: str, attention: str | None = None, dtype: str = "float32", device: str = "cpu") -> Any:
    """The model; shared between tests, which leave it as it is."""
    return build(architecture, attention, dtype, device)


def build(architecture: str, attention: str | None = None, dtype: str = "float32", device: str = "cpu") -> Any:
    """The same, for a test of its own. Matrices are scaled up, so that a step's words differ clearly."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig

    from tools.tiny_config import tiny_config

    known = (CONFIGS | OTHERS).get(architecture)
    config = AutoConfig.for_model(
        **tiny_config(architecture) if known is None else {"model_type": architecture} | known
    )
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, attn_implementation=attention, dtype=getattr(torch, dtype))
    model.generation_config = GenerationConfig(pad_token_id=0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(3)
    return model.eval().to(device)
