"""Whether draft tokens are proposed and verified together."""

from tokendyno.backend.optimizations.base import Choice, Optimization, blocked, note
from tokendyno.backend.plan import Plan
from tokendyno.backend.script.parts import Script

LOOKUP_TOKENS = 5
"""Draft tokens per step, as in https://huggingface.co/docs/transformers/assisted_decoding#prompt-lookup-decoding.
More drafts cost more when they are rejected."""

_DOCS = "https://huggingface.co/docs/transformers/assisted_decoding"
_CODE = "transformers 5.22: generation/utils.py, _assisted_decoding"

_STATEFUL = """
    bailing_hybrid bamba deepseek_v4 falcon_h1 falcon_mamba granitemoehybrid jamba kimi_linear mamba mamba2 nemotron_h
    olmo_hybrid qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen3_next qwen4_exp qwen4_exp_text recurrent_gemma
    rwkv xlstm zamba zamba2 zaya
"""
STATEFUL = frozenset(_STATEFUL.split())
"""Architectures whose class has `_is_stateful`; a test compares them."""

_RULES = (
    blocked(
        lambda s: s.facts.architecture in STATEFUL,
        "This architecture keeps a state, from which rejected draft tokens cannot be taken out again: transformers "
        "refuses it.",
        "transformers 5.22: generation/utils.py, _is_stateful",
    ),
    blocked(
        lambda s: s.cache.static or s.cache.quantized,
        "Rejected draft tokens are cropped from the cache, which neither a static nor a quantized cache supports.",
        f"{_CODE}; cache_utils.py, DynamicLayer.crop on the layers of QuantizedCache",
        fix=(("cache", "dynamic"),),
    ),
    blocked(
        lambda s: s.batch_size > 1,
        "Sequences in a batch would accept different numbers of draft tokens: transformers supports batch size 1 only.",
        _CODE,
    ),
    note(
        lambda s: s.decoder,
        "Draft tokens are looked up in the prompt and the generated text: it helps where text repeats itself. "
        "Verifying several tokens at once sums in another order, so greedy text is the same only where rounding does "
        "not decide (in float32 nearly always); sampled text differs for the same seed.",
        _DOCS,
    ),
)


class Speculation(Optimization):
    name = "speculation"
    title = "Speculation"
    summary = "Propose several draft tokens and verify them in one forward pass."
    default = "off"
    sets = "generate.prompt_lookup"
    off = "off"
    order = 50
    decoders_only = True
    aliases = {
        "": ("speculative decoding", "assisted generation", "draft", "assistant_model"),
        "prompt-lookup": ("prompt_lookup_num_tokens", "n-gram"),
    }
    costs = {"prompt-lookup": "time where the text does not repeat itself"}
    choices = (
        Choice("off", "One forward pass per token.", value=0),
        Choice(
            "prompt-lookup",
            f"Where the last tokens occurred before, the {LOOKUP_TOKENS} tokens that followed are the draft.",
            _RULES,
            title="prompt lookup",
            value=LOOKUP_TOKENS,
        ),
    )

    def write(self, script: Script, plan: Plan) -> None:
        if plan.generate.prompt_lookup:
            script.generate["prompt_lookup_num_tokens"] = str(plan.generate.prompt_lookup)
