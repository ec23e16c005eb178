"""The usual architectures as a table, one row per `model_type`: their facts are there at once, without transformers.

Every other architecture is counted by transformers itself (`counting.py`), which takes seconds.
Each row was read from transformers 5.22: `models/<name>/configuration_<name>.py` for the defaults (which apply when a
config.json omits a field), `modeling_<name>.py` for the rest. Tests compare the table with that package."""

from dataclasses import dataclass
from typing import Literal

WindowRule = Literal[
    "plain",  # if `sliding_window` is set, every layer has the window
    "flag",  # the same, but only with `use_sliding_window`
    "late",  # with `use_sliding_window`: the layers from `max_window_layers` on
    "nope",  # with `use_sliding_window`: the layers without rotary positions
    "pattern",  # every layer except each n-th
]

Parallel = Literal[  # `base_model_tp_plan`, `base_model_ep_plan` of the configs, `_tp_plan` of the models
    "heads",  # each rank has a share of the heads, of the feed-forward, of the vocabulary and of each expert
    "gathered",  # the same matrices are split, but attention gathers their outputs: every rank has all heads
    "experts",  # no tensor-parallel plan: whole experts are distributed; of the rest only the head is split
    "none",  # no plan
]


@dataclass(frozen=True, slots=True)
class Family:
    """One architecture: the defaults of its config class, and what its layers contain.

    heads 0         required in the config; kv_heads 0: as many as heads; head_dim 0: hidden / heads
    qk_norm         norms on queries and keys: per head, or over all heads together
    qkv_bias, o_bias, mlp_bias  True, False, or the config field that decides
    joined          q, k, v are one matrix; gate and up are another
    rope_sets       "one" set of rotary frequencies, one "each" layer kind, or "none" (learned positions)
    parallel        how transformers splits it over GPUs
    """

    vocab: int
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int = 0
    head_dim: int = 0
    max_positions: int = 2048
    window: int = 0
    window_rule: WindowRule = "plain"
    pattern: int = 0
    tied: bool = False
    norms: int = 2
    qk_norm: Literal["", "head", "all"] = ""
    qkv_bias: bool | str = False
    o_bias: bool | str = False
    mlp_bias: bool | str = False
    attention_bias: bool = False
    moe: Literal["", "mixtral", "qwen3_moe", "gpt_oss"] = ""
    experts: int = 0
    experts_per_token: int = 0
    expert_width: int = 0
    joined: bool = False
    rope_sets: Literal["none", "one", "each"] = "one"
    layout: Literal["llama", "gpt2", "bert"] = "llama"
    parallel: Parallel = "heads"


BIAS = "attention_bias"

FAMILIES: dict[str, Family] = {
    "llama": Family(32000, 4096, 11008, 32, 32, qkv_bias=BIAS, o_bias=BIAS, mlp_bias="mlp_bias"),
    "mistral": Family(32000, 4096, 14336, 32, 32, 8, max_positions=131072, window=4096),
    "mixtral": Family(
        32000, 4096, 14336, 32, 32, 8, max_positions=131072, moe="mixtral", experts=8, experts_per_token=2,
    ),
    "qwen2": Family(
        151936, 4096, 22016, 32, 32, 32, max_positions=32768, window=4096, window_rule="late", qkv_bias=True,
    ),
    "qwen3": Family(
        151936, 4096, 22016, 32, 32, 32, 128, max_positions=32768, window=4096, window_rule="late",
        qk_norm="head", qkv_bias=BIAS, o_bias=BIAS,
    ),
    "qwen3_moe": Family(
        151936, 2048, 6144, 24, 32, 4, max_positions=32768, window=4096, window_rule="flag",
        qk_norm="head", qkv_bias=BIAS, o_bias=BIAS,
        moe="qwen3_moe", experts=128, experts_per_token=8, expert_width=768,
    ),
    "olmo2": Family(
        50304, 4096, 11008, 32, 32, qk_norm="all", qkv_bias=BIAS, o_bias=BIAS, parallel="gathered",
    ),
    "olmo3": Family(
        50304, 4096, 11008, 32, 32, window=4096, window_rule="pattern", pattern=4,
        qk_norm="all", qkv_bias=BIAS, o_bias=BIAS, rope_sets="each", parallel="gathered",
    ),
    "smollm3": Family(
        128256, 2048, 11008, 36, 16, 4, max_positions=32768, window_rule="nope", tied=True,
        qkv_bias=BIAS, o_bias=BIAS, mlp_bias="mlp_bias",
    ),
    "phi3": Family(32064, 3072, 8192, 32, 32, max_positions=4096, joined=True, parallel="gathered"),
    "gemma": Family(
        256000, 3072, 24576, 28, 16, 16, 256, max_positions=8192, tied=True, qkv_bias=BIAS, o_bias=BIAS,
    ),
    "gemma2": Family(
        256000, 2304, 9216, 26, 8, 4, 256, max_positions=8192, window=4096, window_rule="pattern", pattern=2,
        tied=True, norms=4, qkv_bias=BIAS, o_bias=BIAS,
    ),
    "gemma3_text": Family(
        262208, 2304, 9216, 26, 8, 4, 256, max_positions=131072, window=4096, window_rule="pattern",
        pattern=6, tied=True, norms=4, qk_norm="head", qkv_bias=BIAS, o_bias=BIAS, rope_sets="each",
    ),
    "gpt_oss": Family(
        201088, 2880, 2880, 36, 64, 8, 64, max_positions=131072, window=128, window_rule="pattern", pattern=2,
        qkv_bias=BIAS, o_bias=BIAS, attention_bias=True, moe="gpt_oss", experts=128, experts_per_token=4,
        parallel="experts",
    ),
    "gpt2": Family(
        50257, 768, 0, 12, 12, max_positions=1024, tied=True, rope_sets="none", layout="gpt2", parallel="none",
    ),
    "bert": Family(
        30522, 768, 3072, 12, 12, max_positions=512, tied=True, rope_sets="none", layout="bert", parallel="none",
    ),
}  # fmt: skip

ENCODERS = frozenset({
    "albert", "bert-generation", "big_bird", "camembert", "convbert", "data2vec-text", "deberta-v2", "distilbert",
    "electra", "ernie", "gte", "megatron-bert", "mobilebert", "modernbert", "mpnet", "nomic_bert", "nystromformer",
    "rembert", "roberta", "roberta-prelayernorm", "roc_bert", "roformer", "squeezebert", "xlm-roberta",
    "xlm-roberta-xl", "yoso",
})  # fmt: skip
"""Encoders with BERT's inputs that are not in the table: their forward passes are timed, their sizes counted."""


def is_encoder(architecture: str) -> bool:
    """Whether this `model_type` is an encoder, which generates nothing. Counting refuses those in no list."""
    family = FAMILIES.get(architecture)
    return architecture in ENCODERS or (family is not None and family.layout == "bert")


# --- attention implementations -------------------------------------------------------------------

# Those that architectures lack, by the flags of transformers' classes; a test compares them.

_NO_SDPA = """
    big_bird bigbird_pegasus bloom codegen convbert cpmant deberta-v2 deepseek_v4 falcon_mamba flint gemma2 git
    gpt_neo gpt_neox_japanese gpt_oss gptj granite_swa granitemoe_swa hy_v4 mamba mamba2 megatron-bert
    mimo_v2_flash mpnet mpt mvp nystromformer openai-gpt prophetnet reformer rembert roformer rwkv squeezebert trocr
    vaultgemma xglm xlm xlnet xlstm yoso
"""
NO_SDPA = frozenset(_NO_SDPA.split())
"""`_supports_sdpa` is not True: transformers refuses sdpa and defaults to eager attention. Not got_ocr2: its class says
so too, but the Qwen2 that decodes for it runs with sdpa."""

_NO_FLASH = """
    axk2 big_bird bigbird_pegasus bloom blt codegen convbert cpmant deberta-v2 deepseek_v32 deepseek_v4 doge
    falcon_mamba git glm_moe_dsa got_ocr2 gpt_neox_japanese hy_v4 inkling_text llama4 llama4_text mamba mamba2
    megatron-bert minimax_m3_vl_text mpnet mpt mvp nystromformer openai-gpt prophetnet qwen4_exp qwen4_exp_text
    reformer rembert roformer rwkv squeezebert trocr xglm xlm xlnet xlstm yoso
"""
NO_FLASH = frozenset(_NO_FLASH.split())
"""`_supports_flash_attn` is not True."""

_NO_FLEX = """
    axk2 bailing_hybrid bamba big_bird bigbird_pegasus bloom blt codegen cohere_compass_text convbert cpmant
    deberta-v2 deepseek_v32 deepseek_v4 falcon falcon_h1 falcon_mamba gemma4_assistant gemma4_unified_assistant git
    glm_moe_dsa got_ocr2 gpt2 gpt_bigcode gpt_neo gpt_neox_japanese gptj hy_v4 jamba kimi_linear mamba mamba2
    megatron-bert mimo_v2_flash minimax_m3_vl_text moss_transcribe_diarize mpnet mpt mvp nystromformer olmo_hybrid
    olmoe openai-gpt persimmon prophetnet qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen3_next qwen4_exp
    qwen4_exp_text reformer rembert roformer rwkv squeezebert stablelm trocr xglm xlm xlnet xlstm yoso zamba
"""
NO_FLEX = frozenset(_NO_FLEX.split())
"""`_supports_flex_attn` is not True."""
