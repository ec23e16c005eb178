"""Whether the decode step is compiled by torch.compile, and in which mode."""

from typing import Any

import msgspec

from backend.messages import Finding
from backend.optimizations.base import Choice, Optimization, Rule, Seen, Subject
from backend.plan import Plan

_DOCS = "https://huggingface.co/docs/transformers/llm_optims#static-kv-cache-and-torchcompile"
_NEEDS_STATIC = Rule(
    "blocked",
    lambda s: s.choices["cache"] != "static",
    "generate compiles the decode step only with the static cache: with any other, compilation is silently skipped.",
    _DOCS,
    fix=(("cache", "static"),),
)
_NO_GRAPHS = Rule(
    "note",
    lambda s: s.machine.device != "cuda",
    "CUDA graphs need a CUDA device: on a CPU this mode compiles, but replays no graphs.",
    "https://docs.pytorch.org/docs/stable/generated/torch.compile.html",
)


class Compile(Optimization):
    """The mode of torch.compile, told apart by the graphs that Dynamo made."""

    name = "compile"
    title = "torch.compile"
    summary = "Compile the decode step inside generate (prefill stays eager)."
    default = "off"
    order = 40
    choices = (
        Choice("off", "off", "Every operator is launched from Python."),
        Choice("default", "default", "Inductor kernels, no CUDA graphs.", (_NEEDS_STATIC,)),
        Choice(
            "reduce-overhead",
            "reduce-overhead",
            "Inductor kernels replayed as CUDA graphs.",
            (_NEEDS_STATIC, _NO_GRAPHS),
        ),
        Choice(
            "max-autotune",
            "max-autotune",
            "Kernels chosen by timing, replayed as CUDA graphs; compiles for minutes.",
            (_NEEDS_STATIC, _NO_GRAPHS),
        ),
        Choice(
            "max-autotune-no-cudagraphs",
            "max-autotune, no CUDA graphs",
            "Kernels chosen by timing, launched one by one.",
            (_NEEDS_STATIC,),
        ),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        mode = None if name == "off" else name
        return msgspec.structs.replace(plan, generate=msgspec.structs.replace(plan.generate, compile_mode=mode))

    def baseline(self, model: Any) -> int:
        return _graphs()

    def find(self, seen: Seen) -> Finding:
        """Counts graphs that Dynamo compiled since before warm-up, or already held for this model, and reads
        the mode from the compiled callable; with a graph mode, also counts CUDA graph skips."""
        compiled = getattr(seen.model, "_compiled_call", None)
        graphs = _graphs()
        if compiled is None or graphs == 0:
            return Finding(self.name, "off", f"{graphs} graphs compiled by Dynamo; the model has no compiled call")
        if seen.plan.generate.compile_mode is None:
            fresh = graphs - (seen.before or 0)
            if fresh == 0:
                return Finding(self.name, "off", "no graph compiled since before warm-up, so none was used")
        from torch._dynamo.utils import counters

        mode = str(seen.model._last_compile_config.mode)
        skips = counters["inductor"]["cudagraph_skips"]
        breaks = sum(counters["graph_break"].values())
        proof = f"{graphs} graphs compiled in mode {mode}, {breaks} graph breaks, {skips} CUDA graph skips"
        return Finding(self.name, mode, proof)


def _graphs() -> int:
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


AXIS = Compile()
