"""Whether the decode step is compiled by torch.compile, and in which mode."""

from typing import Any

import msgspec

from backend.evidence import Finding
from backend.optimizations.base import Choice, Optimization
from backend.optimizations.conditions import kv_cache, skips_compilation
from backend.optimizations.proof import Observation, compiled_calls
from backend.optimizations.subject import Rule, Subject
from backend.plan import Plan
from backend.script.parts import Script

_DOCS = "https://huggingface.co/docs/transformers/llm_optims#static-kv-cache-and-torchcompile"
_MODES = "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"
_INDUCTOR = ("triton_poi_", "triton_red_", "triton_per_", "triton_tem_", "triton_mm_", "triton_for_")


_NEEDS_STATIC = Rule(
    "blocked",
    lambda s: s.facts.kind == "decoder" and not kv_cache(s).fixed,
    "generate compiles the decode step on a static cache only; with any other cache it silently skips compilation.",
    _DOCS,
    fix=(("cache", "static"),),
)
_SKIPPED = Rule(
    "fallback",
    skips_compilation,
    "generate does not compile models quantized with bitsandbytes, quanto, MXFP4, GPTQ or AWQ: it silently skips "
    "compilation.",
    "transformers 5.22: GenerationMixin._valid_auto_compile_criteria, HfQuantizer.is_compileable",
    becomes="off",
    fix=(("compile", "off"),),
)
_LIKE_DEFAULT = Rule(
    "fallback",
    lambda s: s.machine.device != "cuda",
    "On a CPU there are no CUDA graphs and no kernels to autotune: this mode generates the same code as default.",
    "tests/backend/worker/compiler/test_ledger.py: the generated code of all modes is the same",
    becomes="default",
    fix=(("compile", "default"),),
)


class Compile(Optimization):
    """Told by a profile of a few extra tokens (calls of compiled graphs, Inductor kernels, CUDA graph launches) and by
    whether generated kernels were autotuned."""

    name = "compile"
    title = "torch.compile"
    summary = "Compile the decode step (prefill stays eager), or an encoder's forward pass."
    default = "off"
    off = "off"
    order = 40
    leading = True
    choices = (
        Choice("off", "off", "Eager: every operator is launched from Python."),
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
            "Autotuned kernels replayed as CUDA graphs; takes minutes to compile.",
            (_NEEDS_STATIC, _SKIPPED, _LIKE_DEFAULT),
        ),
        Choice(
            "max-autotune-no-cudagraphs",
            "max-autotune, no CUDA graphs",
            "Autotuned kernels, launched one by one.",
            (_NEEDS_STATIC, _SKIPPED, _LIKE_DEFAULT),
        ),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        mode = None if name == "off" else name
        return msgspec.structs.replace(plan, generate=msgspec.structs.replace(plan.generate, compile_mode=mode))

    def write(self, script: Script, plan: Plan) -> None:
        """The custom decode loop compiles its step itself: see `loop`."""
        made = plan.generate
        if made.compile_mode is None or made.loop == "own":
            return
        dynamic = ", dynamic=True" if made.shapes == "dynamic" else ""
        script.imports.add("from transformers import CompileConfig")
        script.patch.append(f'compile_config = CompileConfig(mode="{made.compile_mode}"{dynamic})')
        if plan.load.device == "cpu":
            script.patch.append(
                "compile_config._compile_all_devices = True  # otherwise generate skips compilation on a CPU"
            )
        script.generate["compile_config"] = "compile_config"

    def find(self, observation: Observation) -> Finding:
        """Looks for calls of compiled graphs, or on a GPU for Inductor kernels in a manually captured graph."""
        trace = observation.trace()
        calls = compiled_calls(trace)
        kernels = {name: n for name, n in trace.kernels.items() if name.startswith(_INDUCTOR) and "flex" not in name}
        replayed = trace.runtime["cudaGraphLaunch"] > 0  # flex_attention has Inductor kernels too, but in no graph
        if not calls and not (kernels and replayed):
            return Finding(self.name, "off", f"{trace.steps} extra tokens called no compiled graph")
        launches = trace.runtime["cudaGraphLaunch"] if calls else 0  # without calls, the graph was captured manually
        tuned = (observation.counts.tuned_kernels or 0) > 0
        names = {(False, False): "default", (False, True): "reduce-overhead", (True, True): "max-autotune"}
        mode = names.get((tuned, launches > 0), "max-autotune-no-cudagraphs")
        proof = (
            f"{trace.steps} extra tokens called {calls.total()} compiled graphs ({', '.join(sorted(calls)) or 'none'})"
        )
        if trace.kernels:
            proof += f", ran {sum(kernels.values())} Inductor kernels, {launches} CUDA graphs"
        return Finding(self.name, mode, f"{proof}; {_history(observation)}")


def _history(observation: Observation) -> str:
    """What was compiled for these settings so far."""
    from torch._dynamo.utils import counters

    counts = observation.counts
    told = [f"{counts.graphs or 0:.0f} graphs compiled, compile time (cold) {counts.compile_cold_s or 0:.1f} s"]
    breaks, reasons = counts.graph_breaks or 0, counters["graph_break"]
    told.append(f"{breaks:.0f} graph breaks" + (f" ({_short(next(iter(reasons)))})" if breaks and reasons else ""))
    told.append(f"{counts.recompiles or 0:.0f} recompiles")
    if counts.cudagraph_skips:
        told.append(f"{counts.cudagraph_skips:.0f} CUDA graphs skipped")
    return ", ".join(told)


def _short(text: Any) -> str:
    return str(text).strip().partition("\n")[0][:120]


AXIS = Compile()
