"""The default config of an architecture, shrunk so that a model of it has a few hundred thousand numbers."""

import re
from typing import Any

from transformers import AutoConfig

WIDTH, HEADS, HEAD_DIM = 64, 4, 16
LEAST_LAYERS = 4
LAYERS = r"num_hidden_layers|n_layers?|num_layers|(en|de)coder_layers|num_(en|de)coder_layers|num_blocks|depth"
LAYER_INDICES = (
    r"moe_layers|cross_attention_layers|hybrid_layer_ids|full_attn_idxs|global_attn_indexes|.*layers_indices"
)
NOT_SHAPE = (
    "transformers_version",
    "dtype",
    "_name_or_path",
    "id2label",
    "label2id",
    "architectures",
    "per_layer_config",
)
SIZES: tuple[tuple[str, int], ...] = (
    (r"(bos|decoder_start|cls)_token_id", 0),
    (r"(eos|sep)_token_id", 1),
    (r"(pad)_token_id", 2),
    (r".*_token_(id|index)|vocab_offset", 299),
    (r"decoder_vocab_size|vocab_size.*|.*_vocab_size|vocab_size", 300),
    (r"max_position_embeddings|n_positions|n_ctx|max_seq_len|context_length|max_(target|source)_positions"
     r"|model_max_length|max_inference_chunksize|original_max_position_embeddings", 512),
    (r"sliding_window(_size)?|attention_window_size|attention_chunk_size|local_attention|keep_window_size|window_size"
     r"|floor_scale|rel_extent", 32),
    (r".*(intermediate|ffn|feed_forward|hidden_dim).*_size|.*intermediate_size.*|.*ffn_dim|ffn_hidden_size|d_ff|d_inner"
     r"|dff|dim_ff|mlp_dim|hidden_dim|n_inner", 128),
    (r"attention_hidden_size|mamba_d_ssm", 2 * WIDTH),
    (r"attention_head_dim|qk_head_dim", 2 * HEAD_DIM),
    (r"(mamba_|ssm_)?(d_)?state(_size)?|mamba_d_state|ssm_state_size", 16),
    (r".*head_?dim|mamba_d_head|d_head|dim_head|d_kv|attention_head_size|kv_channels|query_pre_attn_scalar|d_rel"
     r"|hidden_size_per_layer_input", HEAD_DIM),
    (r"rotary_dim", 8),
    (r"num_heads|.*mamba_(n|num)_heads|n_mamba_heads|num_mamba_heads", 2 * HEADS),
    (r"(linear_|swa_)?num_(key_)?(kv_)?(key_value_)?heads", 2),
    (r".*attention_heads.*|n_heads?|index_n_heads|linear_num_(value_)?heads", HEADS),
    (r".*hidden_size.*|d_model|n_embd|dim|emb_dim|embedding_dim|.*embedding_size|word_embed_proj_dim|lru_width"
     r"|.*_embed_dim|embed_dim|true_hidden_size|intra_bottleneck_size|dim_model_base|input_size|prompt_mid_dim"
     r"|projector_(in|out)put_dim|vision_output_dim|output_channels|.*_out_channel|nemo_conv_channels", WIDTH),
    (r"(moe_)?num_(local_)?experts|n_routed_experts", 8),
    (r"num_experts_per_tok(en)?|moe_k|moe_topk|top_k_experts", 2),
    (r"n_groups?|num_expert_group|num_query_groups|o_groups|hc_mult|altup_num_inputs|zero_expert_num"
     r"|heads_per_ngram", 2),
    (r"topk_group|first_k_dense_replace", 1),
    (r"q_lora_rank|kv_lora_rank", 32),
    (r"o_lora_rank|.*_lowrank|laurel_rank|adapter_rank|gated_norm_rank|router_hidden_size", 16),
    (r"mamba_dt_rank|time_step_rank", 4),
    (r"index_topk|.*chunk_size|block_size|index_block_size|local_attn_chunk_length|lsh_attn_chunk_length", 16),
    (r"index_topk_blocks", 2),
    (r"attn_layer_period|no_rope_layer_interval|.*sliding_window_pattern|global_attn_every_n_layers"
     r"|layer_group_size", 2),
    (r"image_size|crop_size", 32),
    (r"patch_size", 16),
    (r"mm_tokens_per_image", 4),
    (r"num_layers_per_stack|num_global_layers", 2),
    (r"base_channels|codebook_dim|codebook_size|num_filters|num_mel_bins|audio_vocab_size|split_ngram_parts"
     r"|heavily_compressed_attention", 32),
    (r"ngram_vocab_size_base|encoder_hash_byte_group_vocab", 1_000),
)  # fmt: skip
"""Names of fields -> what they become at most. The first that fits counts."""

MORE: dict[str, dict[str, Any]] = {
    "bamba": {"attn_layer_indices": [1]},
    "blenderbot": {"encoder_layers": LEAST_LAYERS},
    "falcon_h1": {
        "mamba_d_ssm": 128,
        "mamba_n_heads": 8,
        "mamba_d_head": 16,
        "attention_in_multiplier": 0.8,
        "attention_out_multiplier": 0.7,
        "key_multiplier": 0.4,
        "ssm_in_multiplier": 1.25,
        "ssm_out_multiplier": 0.3,
        "mlp_multipliers": [0.9, 0.6],
        "ssm_multipliers": [0.4, 0.3, 0.6, 0.5, 0.7],
        "embedding_multiplier": 1.5,
        "lm_head_multiplier": 0.5,
    },
    "gemma4": {"text_config": {"global_head_dim": HEAD_DIM}},
    "gemma4_text": {"global_head_dim": HEAD_DIM},
    "gemma4_unified": {"text_config": {"global_head_dim": HEAD_DIM}},
    "gemma4_unified_text": {"global_head_dim": HEAD_DIM},
    "dbrx": {"attn_config": {"rope_theta": 10_000.0, "clip_qkv": 8.0}},
    "dots1": {"n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2, "first_k_dense_replace": 1},
    "jamba": {"attn_layer_offset": 1},
    "hunyuan_v1_dense": {"head_dim": HEAD_DIM},
    "hunyuan_v1_moe": {"head_dim": HEAD_DIM},
    "ministral": {"head_dim": HEAD_DIM},
    "granitemoehybrid": {"layer_types": ["linear_attention", "full_attention"] * 2},
    "lfm2": {"layer_types": ["conv", "full_attention"] * 2},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "cohere_compass_text": {
        "rope_parameters": {
            kind: {"rope_type": "default", "rope_theta": 10_000.0} for kind in ("full_attention", "sliding_attention")
        }
    },
    "nemotron": {"num_key_value_heads": 2},
    "rwkv": {"attention_hidden_size": WIDTH},
    "xlstm": {"num_heads": 2},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "zaya": {"layer_types": ["hybrid", "hybrid_sliding"] * 2, "sliding_window": 32},
}
"""What a default config lacks, without which transformers builds no model of it that runs."""


def tiny_config(model_type: str) -> dict[str, Any]:
    """As a config.json would have it."""
    config = AutoConfig.for_model(model_type).to_dict()
    tiny = _shrunk(config) | {"model_type": model_type, "dtype": "float32"}
    for name, value in MORE.get(model_type, {}).items():
        tiny[name] = {**tiny[name], **value} if isinstance(value, dict) else value
    return tiny


def _shrunk(config: dict[str, Any]) -> dict[str, Any]:
    layers = next((value for name, value in config.items() if _is(LAYERS, name) and isinstance(value, int)), 0)
    indices, lists = _few_layers(config, layers)
    tiny: dict[str, Any] = {}
    for name, value in (config | lists).items():
        if name in NOT_SHAPE:
            continue
        if name in lists:
            tiny[name] = value
        elif isinstance(value, dict):
            tiny[name] = _shrunk(value)
        elif _is(LAYERS, name) and isinstance(value, int):
            tiny[name] = min(value, len(indices) or LEAST_LAYERS)
        else:
            tiny[name] = _small(name, value)
    if tiny.get("num_kv_shared_layers"):
        tiny["num_kv_shared_layers"] = len(indices) // 2
    for kv, heads in (("num_key_value_heads", "num_attention_heads"), ("num_kv_heads", "num_attention_heads")):
        if config.get(kv) and config.get(kv) == config.get(heads):
            tiny[kv] = tiny[heads]
    return tiny


def _few_layers(config: dict[str, Any], layers: int) -> tuple[list[int], dict[str, Any]]:
    """Indices of layers that hold each kind, twice; and the lists of what each layer is, for these alone."""
    lists = {name: value for name, value in config.items() if isinstance(value, list) and value}
    indices = {name: value for name, value in lists.items() if _is(LAYER_INDICES, name)}
    columns = {name: value for name, value in lists.items() if len(value) == layers > 1 and name not in indices}
    rows = [
        repr([value[i] for value in columns.values()] + [i in value for value in indices.values()])
        for i in range(layers)
    ]
    first = sorted({row: i for i, row in reversed(list(enumerate(rows)))}.values())
    chosen = (first * LEAST_LAYERS)[: max(LEAST_LAYERS, 2 * len(first))]
    few: dict[str, Any] = {name: [_small(name, value[i]) for i in chosen] for name, value in columns.items()}
    few |= {name: [new for new, old in enumerate(chosen) if old in value] for name, value in indices.items()}
    return chosen, few


def _small(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_small(name, token) for token in value] if name == "eos_token_id" else value
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    return min(value, next((size for names, size in SIZES if _is(names, name)), value))


def _is(names: str, name: str) -> bool:
    return re.fullmatch(names, name) is not None
