"""When sdpa, sdpa with GQA and flex_attention can run."""

from tokendyno.backend.models.families import NO_FLEX, NO_SDPA
from tokendyno.backend.optimizations.conditions import half_precision, kv_cache, needs_compiler, uses_own_loop
from tokendyno.backend.optimizations.subject import Subject, blocked, fallback, note

_ANYWAY = (("attention", "auto"),)


def without_sdpa(subject: Subject) -> bool:
    """Whether transformers refuses sdpa for this model and defaults to eager attention."""
    return subject.facts.lacks_sdpa


_NO_SDPA_RULES = (
    fallback(
        lambda s: s.facts.sinks,
        "This architecture has attention sinks, which PyTorch's scaled_dot_product_attention does not support; "
        "transformers refuses sdpa for it, so eager attention runs instead.",
        "transformers 5.22: GptOssPreTrainedModel._supports_sdpa is False",
        becomes="eager",
        fix=(("attention", "eager"),),
    ),
    fallback(
        lambda s: not s.facts.sinks and s.facts.architecture in NO_SDPA,
        "transformers does not support sdpa for this architecture, so eager attention runs instead.",
        "transformers 5.22: _supports_sdpa of its class is not True",
        becomes="eager",
        fix=(("attention", "eager"),),
    ),
)

SDPA_RULES = (
    *_NO_SDPA_RULES,
    note(
        lambda s: (
            not without_sdpa(s)
            and s.facts.kind == "decoder"
            and s.machine.device == "cuda"
            and s.machine.capability[0] == 9
            and half_precision(s)
            and kv_cache(s).grows
        ),
        "On Hopper in half precision torch uses cuDNN attention, which builds a new plan for each sequence length "
        "it has not seen: on an H200 a token took 38 to 66 ms, against 17 to 22 ms with eager attention or a static "
        "cache.",
        "lab/measurements.md: Every choice on one GPU",
        fix=(("cache", "static"),),
    ),
)

GQA_RULES = (
    *_NO_SDPA_RULES,
    blocked(
        lambda s: s.facts.architecture == "falcon",
        "Falcon's code chooses between attention classes of its own and takes no function from outside; its sdpa "
        "broadcasts the single KV head as it is.",
        "transformers 5.22: FALCON_ATTENTION_CLASSES",
        fix=_ANYWAY,
    ),
    fallback(
        lambda s: not without_sdpa(s) and s.facts.heads == s.facts.kv_heads,
        "Every query head of this model has its own KV head (no grouped-query attention), so this is plain sdpa.",
        "backend/worker/patch/attention.py: grouped_attention",
        becomes="sdpa",
        fix=(("attention", "sdpa"),),
    ),
    note(
        lambda s: not without_sdpa(s) and kv_cache(s).grows,
        "It helps only with an attention mask, which a static cache always has. A growing cache needs none unless "
        "prompts are padded, and then transformers' sdpa uses grouped heads already.",
        "transformers 5.22: integrations/sdpa_attention.use_gqa_in_sdpa",
    ),
)

EAGER_RULES = (
    blocked(
        lambda s: not s.facts.sinks and "attention" in s.values,
        "This model has no attention sinks that could be left out.",
        "transformers 5.22: GptOssAttention.sinks",
        fix=(("attention", "eager"),),
    ),
    note(
        lambda s: s.facts.sinks and "attention" in s.values,
        "sinks=off changes the model: it was trained with attention sinks, and writes other, often worse text without. "
        "It shows what they are for, and is no optimization.",
        "https://arxiv.org/abs/2309.17453",
    ),
)

FLEX_RULES = (
    blocked(
        lambda s: s.machine.zero_gpu,
        "flex_attention compiles its own kernel, and ZeroGPU has no torch.compile.",
        "https://huggingface.co/docs/hub/spaces-zerogpu",
        fix=_ANYWAY,
    ),
    needs_compiler(lambda s: True, _ANYWAY),
    blocked(
        lambda s: s.facts.architecture in NO_FLEX,
        "transformers does not support flex_attention for this architecture.",
        "transformers 5.22: _supports_flex_attn of its class is not True",
        fix=_ANYWAY,
    ),
    blocked(
        lambda s: s.facts.sinks and s.machine.device == "cpu",
        "flex_attention does not support attention sinks on a CPU.",
        "transformers 5.22: integrations/flex_attention.flex_attention_forward",
        fix=_ANYWAY,
    ),
    blocked(
        lambda s: "sliding" in s.facts.layer_kinds and s.machine.device == "cpu",
        "On a CPU torch.compile generates C++ that does not build for a sliding-window mask (torch 2.13).",
        "tests/backend/optimizations/axes/attention/test_axis.py",
        fix=_ANYWAY,
    ),
    blocked(
        lambda s: s.facts.kind == "decoder" and kv_cache(s).static and not uses_own_loop(s),
        "With a static cache, which compilation needs, generate expects masks to be tensors, and flex_attention's "
        "are not ('BlockMask' object has no attribute 'contiguous').",
        "transformers 5.22: GenerationMixin.prepare_inputs_for_generation",
        fix=(("cache", "dynamic"), ("compile", "off")),
    ),
    blocked(
        lambda s: s.machine.device == "cuda" and s.facts.head_dim < 16,
        "On a GPU flex_attention needs a head dimension of at least 16.",
        "torch: torch/nn/attention/flex_attention.py",
        fix=_ANYWAY,
    ),
    note(
        lambda s: True,
        "flex_attention always compiles its own kernel on the first passes, even with compile=off; the warm-up "
        "includes that time.",
        "transformers 5.22: integrations/flex_attention.WrappedFlexAttention",
    ),
)
