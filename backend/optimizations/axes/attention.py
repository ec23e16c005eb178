"""Which implementation computes attention. transformers takes Hub kernels in place of FlashAttention's packages that
are not installed: rules look at what would be used."""

from tokendyno.backend.models.families import NO_FLASH, NO_FLEX
from tokendyno.backend.optimizations.base import (
    REPOSITORY,
    Choice,
    Optimization,
    Rule,
    blocked,
    divided,
    fallback,
    note,
)
from tokendyno.backend.optimizations.shared_rules import NOT_ON_ZERO_GPU, named_kernels, needs_compiler
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.plan import Plan
from tokendyno.backend.script.parts import Script

FA2, FA3, FA4 = "flash_attention_2", "flash_attention_3", "flash_attention_4"
HUB_FA2, HUB_FA3, HUB_FA4 = (f"kernels-community/{name}" for name in ("flash-attn2", "vllm-flash-attn3", "flash-attn4"))

_PACKAGES = {FA2: "flash-attn", FA3: "flash-attn-3", FA4: "flash-attn-4"}
_INSTEAD = {FA2: HUB_FA2, FA3: HUB_FA3, FA4: HUB_FA4}
_TITLES = {FA2: "FlashAttention 2", FA3: "FlashAttention 3", FA4: "FlashAttention 4"}
_FLASH = "transformers 5.22: modeling_flash_attention_utils.FLASH_ATTENTION_COMPATIBILITY_MATRIX"
_CHECK = "transformers 5.22: PreTrainedModel._check_and_adjust_attn_implementation"


def taken(name: str, subject: Subject) -> str:
    """The implementation that transformers uses where a FlashAttention choice is requested."""
    if subject.facts.sinks and name in (FA2, FA3, HUB_FA2):
        name = HUB_FA3  # GptOssPreTrainedModel._compatible_flash_implementations
    package = _PACKAGES.get(name)
    return _INSTEAD[name] if package and not subject.machine.has(package) else name


def _repositories(s: Subject) -> set[str]:
    """The kernel repository that the choice "hub" names, without its revision."""
    return {name.partition("@")[0] for name in s.values.get("attention", {}).values()}


def flash_rules(name: str) -> tuple[Rule, ...]:
    package = f"the package {_PACKAGES[name]} is not installed, " if name in _PACKAGES else ""
    return (
        blocked(lambda s: not s.cuda, f"{_TITLES.get(name, f'The kernel {name}')} runs on NVIDIA GPUs only.", _FLASH),
        blocked(
            lambda s: s.facts.architecture in NO_FLASH,
            "transformers does not support FlashAttention for this architecture.",
            "transformers 5.22: _supports_flash_attn of its class is not True",
        ),
        blocked(
            lambda s: s.cuda and not s.half_precision,
            "FlashAttention supports float16 and bfloat16 only, and this arm uses another dtype.",
            "https://github.com/Dao-AILab/flash-attention#nvidia-cuda-support",
            fix=(("dtype", "bfloat16"),),
        ),
        blocked(
            lambda s: s.cuda and s.machine.capability < (8, 0),
            "FlashAttention needs compute capability 8.0 (Ampere) or later.",
            "https://github.com/Dao-AILab/flash-attention#nvidia-cuda-support",
        ),
        blocked(
            lambda s: taken(name, s) == HUB_FA3 and s.cuda and s.machine.capability[0] != 9,
            f"{HUB_FA3} is built for Hopper (compute capability 9.0) only.",
            "https://huggingface.co/kernels-community/vllm-flash-attn3",
        ),
        blocked(
            lambda s: s.cuda and s.machine.hub_offline and taken(name, s) not in (*_PACKAGES, *s.machine.hub_kernels),
            lambda s: (
                f"This needs the kernel {taken(name, s)}: {package}it is not in the Hub cache, and the Hub is offline "
                f"(HF_HUB_OFFLINE). Point to a local copy with LOCAL_KERNELS={taken(name, s)}=/folder."
            ),
            _CHECK,
        ),
    )


def _from_hub(name: str) -> Rule:
    """The Hub's kernel runs where the package of that name is not installed."""
    hub = _INSTEAD[name]
    reason = f"The package {_PACKAGES[name]} is not installed; transformers uses the kernel {hub} instead."
    if name == FA4:  # whose kernel is no choice of its own
        return note(lambda s: s.cuda and taken(name, s) == hub, reason, _CHECK)
    return fallback(lambda s: s.cuda and not s.facts.sinks and taken(name, s) == hub, reason, _CHECK, becomes=hub)


_BEFORE_HOPPER = blocked(
    lambda s: s.cuda and s.machine.capability < (9, 0),
    "FlashAttention 4 needs compute capability 9.0 (Hopper) or later.",
    f"{_FLASH}: cuda_min_major_version",
)
_WITHOUT_SINKS = fallback(
    lambda s: s.facts.sinks and s.cuda,
    f"Only {HUB_FA3} and FlashAttention 4 support attention sinks; transformers uses {HUB_FA3} instead.",
    "transformers 5.22: GptOssPreTrainedModel._compatible_flash_implementations",
    becomes=HUB_FA3,
)
_UNTRACED = note(
    lambda s: s.compiles,
    "FlashAttention cannot be traced: each call is a graph break in the compiled step.",
    "transformers 5.22: GenerationMixin._valid_auto_compile_criteria",
)

_NO_SDPA = fallback(
    lambda s: s.facts.lacks_sdpa,
    lambda s: (
        "PyTorch's scaled_dot_product_attention does not support attention sinks, so eager attention runs instead."
        if s.facts.sinks
        else "transformers does not support sdpa for this architecture, so eager attention runs instead."
    ),
    "transformers 5.22: _supports_sdpa of its class is not True",
    becomes="eager",
)

SDPA_RULES = (
    _NO_SDPA,
    note(
        lambda s: (
            not s.facts.lacks_sdpa
            and s.decoder
            and s.cuda
            and s.machine.capability[0] == 9
            and s.half_precision
            and s.cache.grows
        ),
        "On Hopper in half precision torch uses cuDNN attention, which builds a new plan for each sequence length "
        "it has not seen: on an H200 a token took 38 to 66 ms, against 17 to 22 ms with eager attention or a static "
        "cache.",
        "lab/measurements.md: Every choice on one GPU",
        fix=(("cache", "static"),),
    ),
)

GQA_RULES = (
    _NO_SDPA,
    blocked(
        lambda s: s.facts.architecture == "falcon",
        "Falcon's code chooses between attention classes of its own and takes no function from outside; its sdpa "
        "broadcasts the single KV head as it is.",
        "transformers 5.22: FALCON_ATTENTION_CLASSES",
    ),
    fallback(
        lambda s: not s.facts.lacks_sdpa and s.facts.heads == s.facts.kv_heads,
        "Every query head of this model has its own KV head (no grouped-query attention), so this is plain sdpa.",
        "backend/worker/patch/attention.py: grouped_attention",
        becomes="sdpa",
    ),
    note(
        lambda s: not s.facts.lacks_sdpa and s.cache.grows,
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
    NOT_ON_ZERO_GPU,
    needs_compiler(lambda s: True),
    blocked(
        lambda s: s.facts.architecture in NO_FLEX,
        "transformers does not support flex_attention for this architecture.",
        "transformers 5.22: _supports_flex_attn of its class is not True",
    ),
    blocked(
        lambda s: not s.cuda and (s.facts.sinks or "sliding" in s.facts.layer_kinds),
        "On a CPU flex_attention does not support attention sinks, and for a sliding-window mask torch.compile writes "
        "C++ that does not build (torch 2.13).",
        "transformers 5.22: integrations/flex_attention.flex_attention_forward; "
        "tests/backend/optimizations/axes/test_attention.py",
    ),
    blocked(
        lambda s: s.decoder and s.cache.static and not s.own_loop,
        "With a static cache, which compilation needs, generate expects masks to be tensors, and flex_attention's "
        "are not ('BlockMask' object has no attribute 'contiguous').",
        "transformers 5.22: GenerationMixin.prepare_inputs_for_generation",
        fix=(("cache", "dynamic"), ("compile", "off")),
    ),
    blocked(
        lambda s: s.cuda and s.facts.head_dim < 16,
        "On a GPU flex_attention needs a head dimension of at least 16.",
        "torch: torch/nn/attention/flex_attention.py",
    ),
    note(
        lambda s: True,
        "flex_attention always compiles its own kernel on the first passes, even with compile=off; the warm-up "
        "includes that time.",
        "transformers 5.22: integrations/flex_attention.WrappedFlexAttention",
    ),
)


class Attention(Optimization):
    name = "attention"
    title = "Attention"
    summary = "Implementation of the attention function."
    default = "auto"
    order = 20
    leading = True
    wishes = {"eager": "reference"}
    aliases = {
        "": ("attn_implementation", "set_attn_implementation"),
        "sdpa": ("scaled_dot_product_attention",),
        **dict.fromkeys((FA2, HUB_FA2), ("fa2", "flash-attn")),
        **dict.fromkeys((FA3, HUB_FA3), ("fa3", "flash-attn")),
        FA4: ("fa4", "flash-attn"),
    }
    costs = {
        "eager": "time and memory at long prompts",
        "flex_attention": "time to compile",
        **dict.fromkeys((FA2, FA3, FA4), "a package to install"),
        **dict.fromkeys((HUB_FA2, HUB_FA3), "a download of binaries"),
        "hub": "a download of strangers' binaries",
    }
    choices = (
        Choice("auto", "The default of transformers: sdpa where the model supports it, else eager."),
        Choice(
            "eager",
            "Plain matrix products and a softmax, each a kernel of its own.",
            EAGER_RULES,
            values={"sinks": ("on", "off")},
        ),
        Choice(
            "sdpa",
            "PyTorch's scaled_dot_product_attention: fused kernels where the device has them.",
            SDPA_RULES,
            loss=1,
        ),
        Choice(
            "sdpa-gqa",
            "sdpa with grouped-query attention in the kernel: keys and values are not repeated, even with a mask.",
            GQA_RULES,
            title="sdpa with GQA",
        ),
        Choice(
            "flex_attention", "PyTorch's attention with compiled masks and score modifications.", FLEX_RULES, loss=24
        ),
        *(
            Choice(
                name,
                f"The package {_PACKAGES[name]}, for {gpus}.",
                (*flash_rules(name), rule, _from_hub(name), _UNTRACED),
                title=_TITLES[name],
            )
            for name, gpus, rule in (
                (FA2, "Ampere and later", _WITHOUT_SINKS),
                (FA3, "Hopper", _WITHOUT_SINKS),
                (FA4, "Hopper and Blackwell", _BEFORE_HOPPER),
            )
        ),
        Choice(
            HUB_FA2,
            "FlashAttention 2 as prebuilt, from the Hub (kernels-community).",
            (*flash_rules(HUB_FA2), _WITHOUT_SINKS, _UNTRACED),
            title="FlashAttention 2, Hub kernel",
        ),
        Choice(
            HUB_FA3,
            "vLLM's FlashAttention 3, which supports attention sinks; prebuilt, from the Hub (kernels-community).",
            (*flash_rules(HUB_FA3), _UNTRACED),
            title="FlashAttention 3 with sinks, Hub kernel",
        ),
        Choice(
            "hub",
            "Any attention kernel of the Hub: write attention=org/name. Its code runs here.",
            named_kernels(_repositories, "attention=org/name", _CHECK),
            values={"repository": ("", REPOSITORY)},
            example="hub:repository=org/attention",
            title="any Hub kernel",
        ),
    )

    def resolve(self, name: str, subject: Subject) -> str:
        if name == "auto":
            return "eager" if subject.facts.lacks_sdpa else "sdpa"
        return name

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        if name == self.resolve("auto", subject):
            return plan
        choice, values = divided(name)
        return plan.with_load(attention=values.get("repository", choice), sinks=values.get("sinks") != "off")

    def write(self, script: Script, plan: Plan) -> None:
        if plan.load.attention is None:
            return
        script.load["attn_implementation"] = repr(plan.load.attention)
        if not plan.load.sinks:
            script.patched(
                "worker/patch/attention.py", "drop_sinks(model)  # another model than the one that was trained"
            )
        if plan.load.any_kernel and plan.load.source.kind == "random":
            script.imports.add("from transformers.integrations import hub_kernels")
            script.prepare.append("hub_kernels.ALLOW_ALL_KERNELS = True  # from_config takes no allow_all_kernels")
        elif plan.load.any_kernel:
            script.load["allow_all_kernels"] = "True"
        if plan.load.attention == "sdpa-gqa":
            script.prepared("worker/patch/attention.py", "register_grouped_attention()")
