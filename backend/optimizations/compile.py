"""Whether the step that makes a token is compiled by torch.compile, and in which mode."""

from collections import Counter
from typing import Any

import msgspec

from backend.messages import Finding
from backend.optimizations.base import Choice, Optimization, Rule, Seen, Subject, Trace
from backend.optimizations.mxfp4_rules import native
from backend.plan import Plan
from backend.script import Script

GRAPH_MODES = ("reduce-overhead", "max-autotune")
"""Modes that replay what they compiled as CUDA graphs."""

COMPILED_PACKED = frozenset({"compressed-tensors", "fp8", "gemma", "gguf", "mxfp8", "nvfp4", "torchao"})
"""How a checkpoint may be packed and yet be compiled by `generate`; a test holds this against transformers' classes."""

REGION = "Torch-Compiled Region: "  # in a profile, once for each call of a compiled graph

_DOCS = "https://huggingface.co/docs/transformers/llm_optims#static-kv-cache-and-torchcompile"
_MODES = "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"
_INDUCTOR = ("triton_poi_", "triton_red_", "triton_per_", "triton_tem_", "triton_mm_", "triton_for_")


def skipped(subject: Subject) -> bool:
    """Whether generate would silently leave this model uncompiled, because of how it is packed."""
    if subject.facts.kind != "decoder" or subject.choices.get("loop", "generate") != "generate":
        return False
    chosen, packed = subject.choices.get("quantization", "none"), subject.facts.quantization
    if "mxfp4" in (chosen, packed):
        return chosen in ("none", "mxfp4") and native(subject)  # else it is unpacked, and can be compiled
    if chosen == "none":
        return packed is not None and packed not in COMPILED_PACKED
    return chosen.startswith(("bnb", "quanto"))


def compiles(subject: Subject) -> bool:
    """Whether the arm asks for compilation and gets it."""
    return subject.choices.get("compile", "off") != "off" and not skipped(subject)


def replays_graphs(subject: Subject) -> bool:
    """Whether what is compiled is replayed as CUDA graphs."""
    return compiles(subject) and subject.choices["compile"] in GRAPH_MODES and subject.machine.device == "cuda"


_NEEDS_STATIC = Rule(
    "blocked",
    lambda s: s.facts.kind == "decoder" and s.choices["cache"] != "static",
    "Only a decode step on the static cache is compiled: with any other, generate silently skips compilation.",
    _DOCS,
    fix=(("cache", "static"),),
)
_SKIPPED = Rule(
    "fallback",
    skipped,
    "generate compiles no model that is quantized with bitsandbytes, quanto or MXFP4, nor a checkpoint that was packed "
    "with GPTQ or AWQ: it skips that without an error.",
    "transformers 5.22: GenerationMixin._valid_auto_compile_criteria, HfQuantizer.is_compileable",
    becomes="off",
    fix=(("compile", "off"),),
)
_LIKE_DEFAULT = Rule(
    "fallback",
    lambda s: s.machine.device != "cuda",
    "On a CPU there are no CUDA graphs and no kernels to choose from by timing: this mode makes the same code as "
    "default.",
    "tests/backend/worker/test_compiling.py: the generated code of all modes is the same",
    becomes="default",
    fix=(("compile", "default"),),
)


class Compile(Optimization):
    """Told apart by what a profile of a few more tokens shows: calls of compiled graphs, generated kernels, CUDA
    graphs; and by what the generated kernels say of themselves."""

    name = "compile"
    title = "torch.compile"
    summary = "Compile the decode step (prefill stays eager), or an encoder's forward pass."
    default = "off"
    order = 40
    leading = True
    choices = (
        Choice("off", "off", "Every operator is launched from Python."),
        Choice("default", "default", "Inductor kernels, no CUDA graphs.", (_NEEDS_STATIC, _SKIPPED)),
        Choice(
            "reduce-overhead",
            "reduce-overhead",
            "Inductor kernels replayed as CUDA graphs.",
            (_NEEDS_STATIC, _SKIPPED, _LIKE_DEFAULT),
        ),
        Choice(
            "max-autotune",
            "max-autotune",
            "Kernels chosen by timing, replayed as CUDA graphs; compiles for minutes.",
            (_NEEDS_STATIC, _SKIPPED, _LIKE_DEFAULT),
        ),
        Choice(
            "max-autotune-no-cudagraphs",
            "max-autotune, no CUDA graphs",
            "Kernels chosen by timing, launched one by one.",
            (_NEEDS_STATIC, _SKIPPED, _LIKE_DEFAULT),
        ),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        mode = None if name == "off" else name
        return msgspec.structs.replace(plan, generate=msgspec.structs.replace(plan.generate, compile_mode=mode))

    def write(self, script: Script, plan: Plan) -> None:
        """The own loop compiles its step itself: see `loop`."""
        made = plan.generate
        if made.compile_mode is None or made.loop == "own":
            return
        dynamic = ", dynamic=True" if made.shapes == "dynamic" else ""
        script.imports.add("from transformers import CompileConfig")
        script.patch.append(f'compile_config = CompileConfig(mode="{made.compile_mode}"{dynamic})')
        if plan.load.device == "cpu":
            script.patch.append("compile_config._compile_all_devices = True  # else generate skips a CPU")
        script.generate["compile_config"] = "compile_config"

    def find(self, seen: Seen) -> Finding:
        """Looks for calls of compiled graphs, or on a GPU for generated kernels in a graph captured by hand."""
        trace = seen.trace()
        calls = compiled_calls(trace)
        kernels = {name: n for name, n in trace.kernels.items() if name.startswith(_INDUCTOR) and "flex" not in name}
        replayed = trace.runtime["cudaGraphLaunch"] > 0  # flex_attention has generated kernels too, in no graph
        if not calls and not (kernels and replayed):
            return Finding(self.name, "off", f"{trace.steps} more tokens called no compiled graph")
        launches = trace.runtime["cudaGraphLaunch"] if calls else 0  # without calls they are replayed by hand
        tuned = seen.counts.get("tuned_kernels", 0) > 0
        names = {(False, False): "default", (False, True): "reduce-overhead", (True, True): "max-autotune"}
        mode = names.get((tuned, launches > 0), "max-autotune-no-cudagraphs")
        proof = (
            f"{trace.steps} more tokens called {calls.total()} compiled graphs ({', '.join(sorted(calls)) or 'none'})"
        )
        if trace.kernels:
            proof += f", ran {sum(kernels.values())} kernels that Inductor generated, {launches} CUDA graphs"
        return Finding(self.name, mode, f"{proof}; {_history(seen)}")


def compiled_calls(trace: Trace) -> Counter[str]:
    """Calls of compiled graphs by their id. Those of flex_attention are left out: it compiles itself."""
    found = Counter({name.removeprefix(REGION): n for name, n in trace.ops.items() if name.startswith(REGION)})
    if not found:
        return found
    from torch._dynamo.utils import get_compilation_metrics

    flex = {str(m.compile_id) for m in get_compilation_metrics() if "flex_attention" in (m.co_filename or "")}
    return Counter({name: n for name, n in found.items() if name not in flex})


def _history(seen: Seen) -> str:
    """What was compiled for these settings until now, in words."""
    from torch._dynamo.utils import counters

    count = seen.counts.get
    told = [f"{count('graphs', 0):.0f} graphs compiled, cold {count('compile_cold_s', 0):.1f} s"]
    breaks, reasons = count("graph_breaks", 0), counters["graph_break"]
    told.append(f"{breaks:.0f} graph breaks" + (f" ({_short(next(iter(reasons)))})" if breaks and reasons else ""))
    told.append(f"{count('recompiles', 0):.0f} recompiles")
    if skips := count("cudagraph_skips", 0):
        told.append(f"{skips:.0f} times without CUDA graphs")
    return ", ".join(told)


def _short(text: Any) -> str:
    return str(text).strip().partition("\n")[0][:120]


AXIS = Compile()
