"""Which implementation computes attention."""

import ast
from collections import Counter
from pathlib import Path

import msgspec

from backend.messages import Finding
from backend.optimizations import attention_probe
from backend.optimizations.attention_flash import FA2, FA3, FA4, HUB_FA2, HUB_FA3, flash_rules
from backend.optimizations.attention_rules import FLEX_RULES, GQA_RULES, SDPA_RULES, without_sdpa
from backend.optimizations.base import Choice, Optimization, Seen, Subject, Trace
from backend.plan import Plan
from backend.script import Script

_FUNCTIONS = Path(__file__).resolve().parent.parent / "worker" / "attention.py"
_MARKS = {
    "sdpa: flash": ("pytorch_flash::", "_scaled_dot_product_flash_attention"),
    "sdpa: cuDNN": ("cudnn_generated", "_scaled_dot_product_cudnn_attention"),
    "sdpa: memory-efficient": ("fmha_cutlass", "_scaled_dot_product_efficient_attention"),
    "sdpa: math": ("_scaled_dot_product_attention_math",),
    "our own kernel": ("tokendyno_attention",),
    "flex": ("flex_attention", "flex_decoding"),
    "flash": (" flash::", "flash_fwd", "flashattnfwd", "FlashAttentionForward"),
    "softmax": ("aten::softmax", "softmax_warp_forward", "cunn_SoftMax"),
}
"""Names of operators and kernels, as a profile shows them, by the backend that they belong to."""


class Attention(Optimization):
    """Told apart by the function that a short pass ends in; what ran is named from the trace."""

    name = "attention"
    title = "Attention"
    summary = "Implementation of the attention function."
    default = "auto"
    order = 20
    leading = True
    choices = (
        Choice("auto", "auto", "What transformers takes by itself: sdpa where the model has it, else eager."),
        Choice("eager", "eager", "Plain matrix products and a softmax: every step is a kernel of its own."),
        Choice(
            "sdpa",
            "sdpa",
            "PyTorch's scaled_dot_product_attention: fused kernels where the device has them.",
            SDPA_RULES,
        ),
        Choice(
            "sdpa-gqa",
            "sdpa, heads grouped",
            "sdpa that never copies the keys and values of grouped heads, not even where there is a mask.",
            GQA_RULES,
        ),
        Choice(
            "flex_attention", "flex_attention", "PyTorch's attention with compiled masks and score changes.", FLEX_RULES
        ),
        Choice(FA2, "FlashAttention 2", "The package flash-attn.", flash_rules(FA2)),
        Choice(FA3, "FlashAttention 3", "The package flash-attn-3, for Hopper.", flash_rules(FA3)),
        Choice(FA4, "FlashAttention 4", "The package flash-attn-4, for Hopper and Blackwell.", flash_rules(FA4)),
        Choice(
            HUB_FA2,
            "FlashAttention 2, Hub kernel",
            "FlashAttention 2 as a compiled kernel, downloaded from the Hub (kernels-community).",
            flash_rules(HUB_FA2),
        ),
        Choice(
            HUB_FA3,
            "FlashAttention 3 with sinks, Hub kernel",
            "vLLM's FlashAttention 3, which knows gpt-oss's sinks; downloaded from the Hub (kernels-community).",
            flash_rules(HUB_FA3),
        ),
    )

    def resolve(self, name: str, subject: Subject) -> str:
        if name == "auto":
            return "eager" if without_sdpa(subject) else "sdpa"
        return name

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        if name == self.resolve("auto", subject):
            return plan
        return msgspec.structs.replace(plan, load=msgspec.structs.replace(plan.load, attention=name))

    def write(self, script: Script, plan: Plan) -> None:
        if plan.load.attention is None:
            return
        script.load["attn_implementation"] = repr(plan.load.attention)
        if plan.load.attention == "sdpa-gqa":
            imports, functions = _source()
            script.imports.update(imports)
            script.functions += functions
            script.prepare += [
                'AttentionInterface.register("sdpa-gqa", grouped_attention)',
                'AttentionMaskInterface.register("sdpa-gqa", sdpa_mask)',
            ]

    def find(self, seen: Seen) -> Finding:
        """Watches one short pass for the function it ends in, and looks in the trace of the run for what that ran."""
        calls = attention_probe.calls(seen.model)
        found = attention_probe.effective(calls)
        whole = seen.trace().matching("::decoder_layer").total()
        apart = f"{whole} layers of single tokens went to a kernel with attention of its own; else " if whole else ""
        return Finding(self.name, found, f"{apart}{_told(calls)}; {_traced(seen.trace())}")


def _told(calls: list[attention_probe.Call]) -> str:
    """What the short pass called, with the heads of the calls that worked on groups."""
    counts = Counter(call.taken or call.function for call in calls)
    prompt = next((call for call in calls if call.function == "sdpa"), None)
    few = next((call for call in calls if prompt and attention_probe.grouped(call, prompt)), None)
    shown = ", ".join(f"{n} x {name}" for name, n in counts.items()) or "no attention function"
    if prompt is None or few is None:
        return f"a short pass called {shown}"
    keys = few.keys[1] if few.function == "sdpa" else few.queries[1]
    return f"a short pass called {shown}, with {prompt.queries[1]} heads on {keys} key heads, not copied"


def _traced(trace: Trace) -> str:
    """The attention kernels and operators of the traced tokens, by backend."""
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
    return f"{trace.steps} tokens traced: " + (", ".join(found) or "nothing of attention to be seen in compiled code")


def _short(name: str) -> str:
    """A kernel's name without its return type and template parameters."""
    return name.removeprefix("void ").split("<")[0].split("(")[0][:60]


def _source() -> tuple[list[str], list[str]]:
    """Imports and functions of the worker's own attention, as they stand in its file."""
    text = _FUNCTIONS.read_text(encoding="utf-8")
    nodes = ast.parse(text).body
    imports = [ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    functions = [
        ast.get_source_segment(text, node) or ""
        for node in nodes
        if isinstance(node, ast.FunctionDef) and node.name != "register"
    ]
    return [line for line in imports if line != "import torch"], functions


AXIS = Attention()
