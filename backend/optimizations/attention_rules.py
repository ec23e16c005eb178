"""What sdpa, sdpa with grouped heads and flex_attention need of a model, a machine and the other axes."""

from backend.optimizations.attention_flash import half_precision
from backend.optimizations.attention_support import NO_FLEX, NO_SDPA
from backend.optimizations.base import Rule, Subject

_ANYWAY = (("attention", "auto"),)


def without_sdpa(subject: Subject) -> bool:
    """Whether transformers refuses sdpa for this model; it then takes eager by itself."""
    return subject.facts.sinks or subject.facts.architecture in NO_SDPA


_NO_SDPA_RULES = (
    Rule(
        "fallback",
        lambda s: s.facts.sinks,
        "This architecture has attention sinks, which PyTorch's scaled_dot_product_attention cannot express; "
        "transformers refuses sdpa for it, so eager runs instead.",
        "transformers 5.22: GptOssPreTrainedModel._supports_sdpa is False",
        becomes="eager",
        fix=(("attention", "eager"),),
    ),
    Rule(
        "fallback",
        lambda s: not s.facts.sinks and s.facts.architecture in NO_SDPA,
        "transformers has no sdpa for this architecture and refuses it, so eager runs instead.",
        "transformers 5.22: _supports_sdpa of its class is not True",
        becomes="eager",
        fix=(("attention", "eager"),),
    ),
)

SDPA_RULES = (
    *_NO_SDPA_RULES,
    Rule(
        "note",
        lambda s: (
            not without_sdpa(s)
            and s.facts.kind == "decoder"
            and s.machine.device == "cuda"
            and s.machine.capability[0] == 9
            and half_precision(s)
            and "static" not in s.choices["cache"]
        ),
        "On Hopper in half precision torch takes cuDNN's attention, which plans anew for each length that it has not "
        "met: on an H200 38 to 66 ms for a new token, where eager or a static cache of one length took 17 to 22.",
        "MEASUREMENTS.md: Every choice on one GPU",
        fix=(("cache", "static"),),
    ),
)

GQA_RULES = (
    *_NO_SDPA_RULES,
    Rule(
        "fallback",
        lambda s: not without_sdpa(s) and s.facts.heads == s.facts.kv_heads,
        "Every query head of this model has a key head of its own: there are no groups, so this is sdpa.",
        "backend/worker/attention.py: grouped_attention",
        becomes="sdpa",
        fix=(("attention", "sdpa"),),
    ),
    Rule(
        "note",
        lambda s: not without_sdpa(s) and "static" not in s.choices["cache"],
        "It pays with a mask, and a static cache always has one. A growing cache has none while no prompt is padded, "
        "and then transformers' sdpa groups heads by itself.",
        "transformers 5.22: integrations/sdpa_attention.use_gqa_in_sdpa",
    ),
)

FLEX_RULES = (
    Rule(
        "blocked",
        lambda s: s.facts.architecture in NO_FLEX,
        "transformers has no flex_attention for this architecture.",
        "transformers 5.22: _supports_flex_attn of its class is not True",
        fix=_ANYWAY,
    ),
    Rule(
        "blocked",
        lambda s: s.facts.sinks and s.machine.device == "cpu",
        "Attention sinks cannot be run with flex_attention on a CPU.",
        "transformers 5.22: integrations/flex_attention.flex_attention_forward",
        fix=_ANYWAY,
    ),
    Rule(
        "blocked",
        lambda s: "sliding" in s.facts.layer_kinds and s.machine.device == "cpu",
        "For the mask of a sliding window torch's compiler writes C++ that does not compile (torch 2.13 on a CPU).",
        "tests/backend/optimizations/test_attention.py",
        fix=_ANYWAY,
    ),
    Rule(
        "blocked",
        lambda s: (
            s.facts.kind == "decoder"
            and "static" in s.choices["cache"]
            and s.choices.get("loop", "generate") == "generate"
        ),
        "With a static cache, which compilation needs, generate prepares masks as tensors; flex_attention's are none "
        "('BlockMask' object has no attribute 'contiguous').",
        "transformers 5.22: GenerationMixin.prepare_inputs_for_generation",
        fix=(("cache", "dynamic"), ("compile", "off")),
    ),
    Rule(
        "blocked",
        lambda s: s.machine.device == "cuda" and s.facts.head_dim < 16,
        "On a GPU flex_attention needs heads of at least 16 numbers.",
        "torch: torch/nn/attention/flex_attention.py",
        fix=_ANYWAY,
    ),
    Rule(
        "note",
        lambda s: True,
        "flex_attention compiles itself on the first passes, whatever compile says: see the seconds of the warm-up.",
        "transformers 5.22: integrations/flex_attention.WrappedFlexAttention",
    ),
)
