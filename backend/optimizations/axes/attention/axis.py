"""Which implementation computes attention."""

from collections import Counter

import msgspec

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.axes.attention import probe, traced
from tokendyno.backend.optimizations.axes.attention.flash import ANY_HUB, FA2, FA3, FA4, HUB_FA2, HUB_FA3, flash_rules
from tokendyno.backend.optimizations.axes.attention.rules import (
    EAGER_RULES,
    FLEX_RULES,
    GQA_RULES,
    SDPA_RULES,
    without_sdpa,
)
from tokendyno.backend.optimizations.base import REPOSITORY, Choice, Optimization, divided, joined
from tokendyno.backend.optimizations.proof import Observation, Trace, coverage, hides, traced_passes
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.plan import Plan
from tokendyno.backend.script.parts import Script

_MARKS = {
    "sdpa: flash": ("pytorch_flash::", "_scaled_dot_product_flash_attention"),
    "sdpa: cuDNN": ("cudnn_generated", "_scaled_dot_product_cudnn_attention"),
    "sdpa: memory-efficient": ("fmha_cutlass", "_scaled_dot_product_efficient_attention"),
    "sdpa: math": ("_scaled_dot_product_attention_math",),
    "our kernel": ("tokendyno_attention",),
    "flex": ("flex_attention", "flex_decoding"),
    "flash": (" flash::", "flash_fwd", "flashattnfwd", "FlashAttentionForward"),
    "softmax": ("aten::softmax", "softmax_warp_forward", "cunn_SoftMax"),
}
"""Parts of operator and kernel names in a profile, by attention backend."""

_NO_SINK = -1e4
"""Beside any scores a sink below this has no share of the softmax: it is 0 in every number format."""

_BY_HASHES = ("yoso",)
"""Architectures whose layers sample attention by hashes of queries and keys: none of these functions is called."""


class Attention(Optimization):
    """Told by the calls of every layer in a trace of the run's own steps."""

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
        "flash_attention_2": ("fa2", "flash-attn"),
        "flash_attention_3": ("fa3", "flash-attn"),
        "flash_attention_4": ("fa4", "flash-attn"),
        "kernels-community/flash-attn2": ("fa2", "flash-attn"),
        "kernels-community/vllm-flash-attn3": ("fa3", "flash-attn"),
    }
    costs = {
        "eager": "time and memory at long prompts",
        "flex_attention": "time to compile",
        "flash_attention_2": "a package to install",
        "flash_attention_3": "a package to install",
        "flash_attention_4": "a package to install",
        "kernels-community/flash-attn2": "a download of binaries",
        "kernels-community/vllm-flash-attn3": "a download of binaries",
        "hub": "a download of strangers' binaries",
    }
    choices = (
        Choice("auto", "auto", "The default of transformers: sdpa where the model supports it, else eager."),
        Choice(
            "eager",
            "eager",
            "Plain matrix products and a softmax, each a kernel of its own.",
            EAGER_RULES,
            values={"sinks": ("on", "off")},
        ),
        Choice(
            "sdpa",
            "sdpa",
            "PyTorch's scaled_dot_product_attention: fused kernels where the device has them.",
            SDPA_RULES,
            loss=1,
            combines=(("cache", "dynamic"),),
        ),
        Choice(
            "sdpa-gqa",
            "sdpa with GQA",
            "sdpa with grouped-query attention in the kernel: keys and values are not repeated, even with a mask.",
            GQA_RULES,
        ),
        Choice(
            "flex_attention",
            "flex_attention",
            "PyTorch's attention with compiled masks and score modifications.",
            FLEX_RULES,
        ),
        Choice(FA2, "FlashAttention 2", "The package flash-attn.", flash_rules(FA2)),
        Choice(FA3, "FlashAttention 3", "The package flash-attn-3, for Hopper.", flash_rules(FA3)),
        Choice(FA4, "FlashAttention 4", "The package flash-attn-4, for Hopper and Blackwell.", flash_rules(FA4)),
        Choice(
            HUB_FA2,
            "FlashAttention 2, Hub kernel",
            "FlashAttention 2 as prebuilt, from the Hub (kernels-community).",
            flash_rules(HUB_FA2),
        ),
        Choice(
            HUB_FA3,
            "FlashAttention 3 with sinks, Hub kernel",
            "vLLM's FlashAttention 3, which supports attention sinks; prebuilt, from the Hub (kernels-community).",
            flash_rules(HUB_FA3),
        ),
        Choice(
            "hub",
            "any Hub kernel",
            "Any attention kernel of the Hub: write attention=org/name. Its code runs here.",
            ANY_HUB,
            values={"repository": ("", REPOSITORY)},
            example="hub:repository=org/attention",
        ),
    )

    def resolve(self, name: str, subject: Subject) -> str:
        if name == "auto":
            return "eager" if without_sdpa(subject) else "sdpa"
        return name

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        if name == self.resolve("auto", subject):
            return plan
        choice, values = divided(name)
        changed = msgspec.structs.replace(
            plan.load, attention=values.get("repository", choice), sinks=values.get("sinks") != "off"
        )
        return msgspec.structs.replace(plan, load=changed)

    def write(self, script: Script, plan: Plan) -> None:
        if plan.load.attention is None:
            return
        script.load["attn_implementation"] = repr(plan.load.attention)
        if not plan.load.sinks:
            script.define("worker/patch/attention.py", "drop_sinks")
            script.patch.append("drop_sinks(model)  # another model than the one that was trained")
        if plan.load.any_kernel and plan.load.source.kind == "random":
            script.imports.add("from transformers.integrations import hub_kernels")
            script.prepare.append("hub_kernels.ALLOW_ALL_KERNELS = True  # from_config takes no allow_all_kernels")
        elif plan.load.any_kernel:
            script.load["allow_all_kernels"] = "True"
        if plan.load.attention == "sdpa-gqa":
            script.define("worker/patch/attention.py", "register_grouped_attention")
            script.prepare.append("register_grouped_attention()")

    def find(self, observation: Observation) -> Finding:
        """Counts in the trace which attention every layer called in every pass; a short pass tells what it does not."""
        if observation.model.config.model_type in _BY_HASHES:
            proof = "this architecture samples attention by hashes, by code of its own"
            return Finding(self.name, "eager", proof, outcome="not_applicable")
        probed = probe.calls(observation.model)
        name = probe.effective(probed)
        if probed and probed[0].function == "kernel":
            proof = f"the first layer's attention, which all layers fetch by one name, called {name}"
            return Finding(self.name, _choice_of(name, observation.plan.load.attention), proof)
        trace, heads = observation.trace(), traced.heads_of(observation.model)
        calls = traced.calls(trace, heads, inline=not probed)
        others, whole = calls.others(name), trace.matching("::decoder_layer").total()
        if others and not calls.of(name) and not _is_flash(name):
            name, others = max(others, key=others.__getitem__), Counter()
        reached, expected = _counted(observation, calls.of(name), others.total(), name)
        said = [_probed(probed), _traced(trace)]
        if whole:
            said.insert(0, f"{whole} decoder layers ran in a fused layer kernel with its own attention; otherwise")
        if expected is not None:
            said.append(f"{reached} of {expected} calls were {name}" + "".join(f", {n} {o}" for o, n in others.items()))
        if hidden := hides(observation):
            said.append(f"decode steps ran {hidden}, where calls of attention cannot be counted")
        effective = _choice_of(name, observation.plan.load.attention)
        if sinks := [one.max().item() for key, one in observation.model.named_parameters() if key.endswith(".sinks")]:
            off = max(sinks) < _NO_SINK
            said.append(f"{len(sinks)} layers with sinks, whose highest score is {max(sinks):.3g}")
            effective = joined(effective, {"sinks": "off"}) if off else effective
        return Finding(self.name, effective, "; ".join(said), reached, expected)


def _is_flash(name: str) -> bool:
    """Whether its kernels are no operators of torch: packages of FlashAttention, and those of the Hub."""
    return name.startswith("flash") or "/" in name


def _choice_of(name: str, planned: str | None) -> str:
    """The choice that a kernel of the Hub belongs to: one of its own, or that of any. A loaded kernel does not tell the
    revision that was asked for."""
    if "/" not in name or any(choice.name == name for choice in Attention.choices):
        return name
    asked = planned if planned and planned.partition("@")[0] == name else name
    return joined("hub", {"repository": asked})


def _counted(observation: Observation, seen: int, others: int, name: str) -> tuple[int | None, int | None]:
    """(reached, expected) calls of attention: every layer in every pass. Flash kernels are counted by their names."""
    layers = traced.layers(observation)
    passes = layers * traced_passes(observation)
    if _is_flash(name) and (flash := traced.flash_calls(observation.trace())):
        return min(flash, passes), max(passes, min(flash, passes) + others)
    if _is_flash(name) or (hides(observation) and not seen):
        return (max(0, passes - others), passes) if others else (None, None)
    reached, expected = coverage(observation, seen, layers)
    if reached is None or expected is None:
        return None, None
    return reached, max(expected, reached + others)


def _probed(calls: list[probe.Call]) -> str:
    """What the short pass called, with the head counts of grouped calls."""
    counts = Counter(call.taken or call.function for call in calls)
    prompt = next((call for call in calls if call.function == "sdpa"), None)
    few = next((call for call in calls if prompt and probe.grouped(call, prompt)), None)
    shown = ", ".join(f"{n} x {name}" for name, n in counts.items()) or "no attention function"
    if prompt is None or few is None:
        return f"a short pass called {shown}"
    keys = few.keys[1] if few.function == "sdpa" else few.queries[1]
    return f"a short pass called {shown}, with {prompt.queries[1]} query heads on {keys} KV heads, not repeated"


def _traced(trace: Trace) -> str:
    """Attention kernels and operators in the trace, by backend."""
    if not trace.steps:
        return "no trace"
    found: list[str] = []
    for backend, marks in _MARKS.items():
        names = trace.matching(*marks)
        real: Counter[str] = Counter()
        for name, n in names.items():
            real[_short(name)] += n
        if real and not (backend == "softmax" and found):
            found.append(f"{backend} ({', '.join(f'{n} x {name}' for name, n in real.most_common(2))})")
    return f"{trace.steps} tokens traced: " + (", ".join(found) or "no attention kernel visible in compiled code")


def _short(name: str) -> str:
    """A kernel's name without its return type and template parameters."""
    return name.removeprefix("void ").split("<")[0].split("(")[0][:60]


AXIS = Attention()
