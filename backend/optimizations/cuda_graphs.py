"""Whether the kernels of a token are launched one by one, or replayed as CUDA graphs, and captured by whom."""

import msgspec

from backend.messages import Finding
from backend.optimizations.base import Choice, Optimization, Rule, Seen, Subject
from backend.optimizations.compile import compiled_calls, replays_graphs, skipped
from backend.optimizations.experts import settled
from backend.plan import GraphsKind, Plan

_DOCS = "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"
_CAPTURE = "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs"
_KINDS: dict[str, GraphsKind] = {"off": "off", "compile": "compile", "manual": "manual"}


_NEEDS_CUDA = Rule(
    "blocked",
    lambda s: s.machine.device != "cuda",
    "CUDA graphs need a CUDA device.",
    _CAPTURE,
    fix=(("cuda_graphs", "auto"),),
)
_OFF_RULES = (
    Rule(
        "blocked",
        lambda s: replays_graphs(s) and s.choices["compile"] == "reduce-overhead",
        "reduce-overhead is the mode that replays CUDA graphs. Without them it is the mode default.",
        _DOCS,
        fix=(("compile", "default"),),
    ),
    Rule(
        "blocked",
        lambda s: replays_graphs(s) and s.choices["compile"] == "max-autotune",
        "max-autotune replays CUDA graphs. Without them it is max-autotune-no-cudagraphs.",
        _DOCS,
        fix=(("compile", "max-autotune-no-cudagraphs"),),
    ),
)
_COMPILE_RULES = (
    _NEEDS_CUDA,
    Rule(
        "blocked",
        lambda s: s.machine.device == "cuda" and skipped(s),
        "generate does not compile a model that is quantized in this way, so it has no graphs through compile.",
        "backend/optimizations/compile.py: skipped",
        fix=(("cuda_graphs", "auto"),),
    ),
    Rule(
        "blocked",
        lambda s: s.machine.device == "cuda" and not replays_graphs(s) and not skipped(s) and s.facts.kind == "decoder",
        "Graphs through compile come with the compile modes reduce-overhead and max-autotune.",
        _DOCS,
        fix=(("compile", "reduce-overhead"), ("cache", "static")),
    ),
    Rule(
        "blocked",
        lambda s: s.machine.device == "cuda" and not replays_graphs(s) and s.facts.kind == "encoder",
        "Graphs through compile come with the compile modes reduce-overhead and max-autotune.",
        _DOCS,
        fix=(("compile", "reduce-overhead"),),
    ),
)
_MANUAL_RULES = (
    _NEEDS_CUDA,
    Rule(
        "blocked",
        lambda s: s.facts.kind == "encoder",
        "What is captured by hand is the step of the own decode loop, and an encoder has none.",
        "backend/worker/graphs.py",
        fix=(("cuda_graphs", "compile"), ("compile", "reduce-overhead")),
    ),
    Rule(
        "blocked",
        lambda s: (
            s.machine.device == "cuda"
            and s.facts.kind == "decoder"
            and (s.choices["cache"] != "static" or s.choices.get("loop", "generate") != "own")
        ),
        "A graph is replayed on the addresses it was captured on, so every tensor of the step must stay where it is: "
        "that takes the static cache and the own loop.",
        _CAPTURE,
        fix=(("cache", "static"), ("loop", "own")),
    ),
    Rule(
        "blocked",
        replays_graphs,
        "This compile mode records CUDA graphs itself, and a graph cannot be captured within another.",
        _DOCS,
        fix=(("compile", "default"),),
    ),
    Rule(
        "blocked",
        lambda s: s.machine.device == "cuda" and s.choices.get("quantization") == "bnb-int8",
        "LLM.int8() asks the host at every product whether there are outliers, and a step that waits for the host "
        "cannot be captured.",
        "tests/gpu/test_own.py: the capture fails on an H200 with bitsandbytes 0.50.2; nf4 and torchao's int8 pass",
        fix=(("quantization", "torchao-int8"),),
    ),
    Rule(
        "blocked",
        lambda s: s.machine.device == "cuda" and s.choices.get("experts") == "eager" and not settled(s),
        "Eager experts ask the host which of them were hit, and a step that waits for the host cannot be captured.",
        "tests/gpu/test_own.py: the capture fails on an H200",
        fix=(("experts", "batched_mm"),),
    ),
)


class CudaGraphs(Optimization):
    """Told apart by the graph launches of a few more tokens, and by whether compiled code was called to make them."""

    name = "cuda_graphs"
    title = "CUDA graphs"
    summary = "Replay the kernels of a token as one recorded graph, instead of launching each from the host."
    default = "auto"
    order = 42
    leading = True
    choices = (
        Choice("auto", "auto", "As the compile mode says: reduce-overhead and max-autotune replay graphs on a GPU."),
        Choice("off", "off", "Every kernel is launched from the host.", _OFF_RULES),
        Choice("compile", "through compile", "Recorded and replayed by Inductor's CUDA graph trees.", _COMPILE_RULES),
        Choice(
            "manual",
            "captured by hand",
            "The whole decode step, sampling included, captured once in torch.cuda.CUDAGraph and replayed.",
            _MANUAL_RULES,
        ),
    )

    def resolve(self, name: str, subject: Subject) -> str:
        if name == "auto":
            return "compile" if replays_graphs(subject) else "off"
        return name

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        kind: GraphsKind = "auto" if name == self.resolve("auto", subject) else _KINDS[name]
        return msgspec.structs.replace(plan, generate=msgspec.structs.replace(plan.generate, cuda_graphs=kind))

    def find(self, seen: Seen) -> Finding:
        """A graph launch within a call of compiled code is Inductor's; one without any is ours."""
        trace = seen.trace()
        launches = trace.runtime["cudaGraphLaunch"]
        kernels = sum(trace.kernels.values())
        steps = max(1, trace.steps)
        told = f"{launches} graph launches and {kernels:,} kernels in {trace.steps} more tokens"
        if trace.kernels:
            told += f": {launches / steps:.1f} and {kernels / steps:,.0f} a token"
        if not launches:
            return Finding(self.name, "off", told)
        calls = compiled_calls(trace).total()
        if calls:
            return Finding(self.name, "compile", f"{told}; {calls} calls of compiled code made them")
        captures = seen.counts.get("graph_captures", 0)
        return Finding(self.name, "manual", f"{told}; no compiled code was called; {captures:.0f} captured by hand")


AXIS = CudaGraphs()
