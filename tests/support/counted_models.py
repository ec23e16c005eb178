"""Tiny configs of architectures outside the table, one for each way of keeping a cache."""

from typing import Any

_SHAPE: dict[str, Any] = {
    "vocab_size": 512,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "dtype": "float32",
    "max_position_embeddings": 512,
}

COUNTED: dict[str, dict[str, Any]] = {
    "multi-query": _SHAPE | {"model_type": "falcon", "multi_query": True, "new_decoder_architecture": False},
    "experts by token": _SHAPE | {
        "model_type": "doge", "num_key_value_heads": 2, "intermediate_size": 128, "is_moe": True, "num_experts": 16,
        "num_experts_per_tok": 4, "keep_window_size": 64,
    },
    "attention of experts": _SHAPE | {
        "model_type": "jetmoe", "num_key_value_heads": 2, "kv_channels": 32, "intermediate_size": 96,
        "num_local_experts": 4, "num_experts_per_tok": 2,
    },
    "latents": _SHAPE | {
        "model_type": "deepseek_v3", "num_key_value_heads": 4, "intermediate_size": 128, "moe_intermediate_size": 64,
        "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
        "first_k_dense_replace": 1, "kv_lora_rank": 32, "q_lora_rank": 32, "qk_rope_head_dim": 16,
        "qk_nope_head_dim": 16, "v_head_dim": 16,
    },
    "an index": _SHAPE | {
        "model_type": "deepseek_v32", "num_key_value_heads": 4, "intermediate_size": 128, "moe_intermediate_size": 64,
        "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1,
        "kv_lora_rank": 32, "q_lora_rank": 32, "qk_rope_head_dim": 16, "qk_nope_head_dim": 16, "v_head_dim": 16,
        "index_n_heads": 2, "index_head_dim": 32, "index_topk": 4,
    },
    "attention and a state": _SHAPE | {
        "model_type": "falcon_h1", "num_key_value_heads": 2, "intermediate_size": 128, "mamba_d_ssm": 64,
        "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_n_groups": 1, "mamba_d_state": 16, "mamba_chunk_size": 16,
    },
    "attention or a state": _SHAPE | {
        "model_type": "jamba", "num_hidden_layers": 4, "num_key_value_heads": 2, "intermediate_size": 96,
        "num_experts": 4, "num_experts_per_tok": 2, "attn_layer_period": 2, "attn_layer_offset": 1,
        "mamba_d_state": 8, "mamba_dt_rank": 4, "use_mamba_kernels": False,
    },
    "shared layers": _SHAPE | {
        "model_type": "gemma3n_text", "num_hidden_layers": 4, "num_key_value_heads": 2, "head_dim": 16,
        "intermediate_size": [128] * 4, "num_kv_shared_layers": 2, "vocab_size_per_layer_input": 512,
        "hidden_size_per_layer_input": 16, "laurel_rank": 8, "sliding_window": 8, "altup_num_inputs": 2,
        "layer_types": ["sliding_attention", "full_attention"] * 2, "activation_sparsity_pattern": [0.0] * 4,
    },
    "chunks": _SHAPE | {
        "model_type": "llama4_text", "num_hidden_layers": 4, "num_key_value_heads": 2, "head_dim": 16,
        "intermediate_size": 64, "intermediate_size_mlp": 128, "num_local_experts": 4, "num_experts_per_tok": 1,
        "attention_chunk_size": 8,
    },
    "an encoder's decoder": {
        "model_type": "bart", "is_encoder_decoder": False, "is_decoder": True, "vocab_size": 512, "d_model": 64,
        "encoder_layers": 2, "decoder_layers": 2,
        "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 128, "decoder_ffn_dim": 128,
        "max_position_embeddings": 512, "dtype": "float32",
    },
    "an encoder": _SHAPE | {
        "model_type": "modernbert", "intermediate_size": 96, "local_attention": 16, "pad_token_id": 0,
        "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2,
    },
}  # fmt: skip
