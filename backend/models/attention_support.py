"""Attention implementations that architectures lack, by the flags of transformers' classes; a test compares them."""

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
