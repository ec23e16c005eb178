"""Every architecture of which kernels compute whole decoder layers, in small, with what is special about it."""

from typing import Any

from tests.support.tiny_models import WINDOW

SHAPE: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
MIXED = {"sliding_window": WINDOW, "layer_types": ["sliding_attention"] * 3 + ["full_attention"]}
ROPE = {"rope_type": "default", "rope_theta": 1e4}
PARTIAL = {"rope_parameters": ROPE | {"partial_rotary_factor": 0.5}}
_STATES = {"layer_types": ["linear_attention"] * 3 + ["full_attention"]}
_DELTA = _STATES | {
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 32,
}  # fmt: skip
_LATENT = {
    "num_key_value_heads": 8, "q_lora_rank": 48, "kv_lora_rank": 32, "qk_nope_head_dim": 48, "qk_rope_head_dim": 16,
    "v_head_dim": 32,
}  # fmt: skip
_SPACE = {"mamba_n_heads": 8, "mamba_n_groups": 2, "mamba_d_state": 32}
MODELS: dict[str, dict[str, Any]] = {
    "llama": SHAPE | {"attention_bias": True, "mlp_bias": True},
    "mistral": SHAPE | {"sliding_window": WINDOW},
    "qwen3": SHAPE,
    "qwen2": SHAPE,
    "granite": SHAPE | {
        "residual_multiplier": 0.4, "attention_multiplier": 0.2, "embedding_multiplier": 3.0, "logits_scaling": 2.0,
    },
    "phi3": SHAPE | {"rope_parameters": ROPE | {"partial_rotary_factor": 0.75}},
    "smollm3": SHAPE | {"no_rope_layer_interval": 2},
    "glm4": SHAPE | PARTIAL | {"num_key_value_heads": 1, "attention_bias": True},
    "glm": SHAPE | PARTIAL,
    "gemma": SHAPE,
    "gemma2": SHAPE | MIXED | {"query_pre_attn_scalar": 24, "attn_logit_softcapping": 2.0},
    "gemma3_text": SHAPE | MIXED | {"query_pre_attn_scalar": 24},
    "ministral": SHAPE | MIXED,
    "ministral3": SHAPE | {"rope_parameters": ROPE | {
        "llama_4_scaling_beta": 0.5, "original_max_position_embeddings": 64,
    }},
    "olmo2": SHAPE,
    "olmo3": SHAPE | MIXED,
    "seed_oss": SHAPE | {"attention_bias": True},
    "helium": SHAPE | {"hidden_size": 128},
    "ernie4_5": SHAPE | {"use_bias": True},
    "cwm": SHAPE | MIXED,
    "arcee": SHAPE,
    "exaone4": SHAPE | MIXED | {"sliding_window_pattern": "LLLG"},
    "hyperclovax": SHAPE | {"use_post_norm": True, "attention_multiplier": 0.2},
    "granite_swa": SHAPE | MIXED | {"residual_multiplier": 0.4, "layer_rope_theta": [1e4, 0, 1e4, 1e3]},
    "lfm2": SHAPE | {
        "layer_types": ["conv", "full_attention"] * 2, "conv_bias": True, "block_auto_adjust_ff_dim": False,
        "intermediate_size": 80, "num_key_value_heads": 4,
    },
    "qwen3_5_text": SHAPE | PARTIAL | _DELTA,
    "granitemoehybrid": SHAPE | _STATES | _SPACE | {
        "num_local_experts": 0, "shared_intermediate_size": 96, "residual_multiplier": 0.4, "attention_multiplier": 0.2,
    },
    "bamba": SHAPE | _SPACE | {"attn_layer_indices": [1, 3]},
    "falcon_h1": SHAPE | _SPACE | {
        "mamba_d_ssm": 128, "mamba_d_head": 16, "attention_in_multiplier": 0.8, "attention_out_multiplier": 0.7,
        "key_multiplier": 0.4, "ssm_in_multiplier": 1.25, "ssm_out_multiplier": 0.3, "mlp_multipliers": [0.9, 0.6],
        "ssm_multipliers": [0.4, 0.3, 0.6, 0.5, 0.7], "mlp_bias": True, "attention_bias": True,
        "projectors_bias": True, "mamba_proj_bias": True,
    },
    "youtu": SHAPE | _LATENT | {"q_lora_rank": None, "rope_interleave": False},
    "minicpm3": SHAPE | _LATENT | {"v_head_dim": 48, "rms_norm_eps": 1e-3},
    "gpt_oss": SHAPE | {
        "sliding_window": WINDOW, "num_local_experts": 4, "num_experts_per_tok": 2, "rope_parameters": ROPE,
    },
    "gpt2": {
        "vocab_size": 97, "n_embd": 128, "n_inner": 96, "n_layer": 4, "n_head": 2, "n_positions": 256,
        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    },
}  # fmt: skip
_ROUTED = SHAPE | {"num_experts_per_tok": 3, "moe_intermediate_size": 32}
MIXTURES: dict[str, dict[str, Any]] = {
    "qwen3_moe": _ROUTED | {"num_experts": 8, "norm_topk_prob": True, "mlp_only_layers": [1]},
    "qwen2_moe": _ROUTED | {"num_experts": 8, "shared_expert_intermediate_size": 48, "qkv_bias": True},
    "qwen3_5_moe_text": _ROUTED | PARTIAL | _DELTA | {"num_experts": 8, "shared_expert_intermediate_size": 48},
    "qwen3_next": _ROUTED | PARTIAL | _DELTA | {
        "num_experts": 8, "shared_expert_intermediate_size": 48, "norm_topk_prob": True, "mlp_only_layers": [1],
    },
    "olmoe": _ROUTED | {"num_experts": 12, "num_attention_heads": 4},
    "mixtral": SHAPE | {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": WINDOW},
    "nemotron_h": _ROUTED | {
        "layer_types": ["linear_attention", "moe", "full_attention", "mlp"], "mamba_num_heads": 8,
        "mamba_head_dim": 16, "n_groups": 2, "ssm_state_size": 32, "n_routed_experts": 8, "routed_scaling_factor": 2.5,
        "moe_shared_expert_intermediate_size": 48,
    },
    "glm4_moe": _ROUTED | PARTIAL | {
        "n_routed_experts": 16, "n_group": 4, "topk_group": 2, "routed_scaling_factor": 2.5, "use_qk_norm": True,
        "attention_bias": True,
    },
    "deepseek_v2": _ROUTED | _LATENT | {
        "n_routed_experts": 12, "routed_scaling_factor": 1.5, "q_lora_rank": None, "first_k_dense_replace": 1,
    },
    "deepseek_v3": _ROUTED | _LATENT | {
        "n_routed_experts": 16, "n_group": 4, "topk_group": 2, "first_k_dense_replace": 1, "attention_bias": True,
        "rope_parameters": ROPE | {
            "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "mscale_all_dim": 0.8,
        },
    },
    "glm4_moe_lite": _ROUTED | _LATENT | {"n_routed_experts": 16},
    "dots1": _ROUTED | {"n_routed_experts": 16, "n_shared_experts": 1, "n_group": 4, "topk_group": 2},
    "solar_open": _ROUTED | {"n_routed_experts": 12, "n_group": 1, "routed_scaling_factor": 2.5},
    "minimax_m2": _ROUTED | PARTIAL | {"num_local_experts": 8},
    "mellum": _ROUTED | MIXED | {"num_experts": 8, "rope_parameters": {
        "full_attention": ROPE, "sliding_attention": ROPE | {"rope_theta": 1e3},
    }},
    "lfm2_moe": _ROUTED | {
        "layer_types": ["conv", "full_attention"] * 2, "num_experts": 8, "num_dense_layers": 1,
        "num_key_value_heads": 4,
    },
}  # fmt: skip
"""Whole layers only where kernels of ours compute the experts too."""


def build(architecture: str, dtype: str = "float32", device: str = "cpu") -> Any:
    """Random weights, scaled so that a step's words differ clearly, biases and norms too."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig

    torch.manual_seed(0)
    config = AutoConfig.for_model(architecture, **(MODELS | MIXTURES)[architecture])
    model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype)).to(device).eval()
    model.generation_config = GenerationConfig(pad_token_id=0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3) if parameter.ndim > 1 else parameter.add_(torch.rand_like(parameter) / 4)
    if architecture in ("gpt_oss", *MIXTURES):
        model.set_experts_implementation("batched_mm")
    return model
