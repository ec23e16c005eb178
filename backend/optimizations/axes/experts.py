"""How a mixture of experts is computed."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from tokendyno.backend.evidence import Finding
from tokendyno.backend.hardware import kernel_packages
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations import routed
from tokendyno.backend.optimizations.base import Choice, Optimization
from tokendyno.backend.optimizations.conditions import (
    compiles,
    compute_dtype,
    drafts,
    experts_settled,
    runs_mxfp4,
    runs_own_mxfp4,
    takes_hub_kernels,
)
from tokendyno.backend.optimizations.proof import Observation, Trace, coverage, hides, prompt_passes, traced_passes
from tokendyno.backend.optimizations.subject import Rule, Subject, When, blocked, fallback, note
from tokendyno.backend.optimizations.tensor_bytes import local_part
from tokendyno.backend.plan import Plan
from tokendyno.backend.script.parts import Script

_MOE = "transformers 5.22: integrations/moe.py"
GROUPED_MM, FALLBACK, LOOP = "aten::_grouped_mm", "transformers::grouped_mm_fallback", "aten::one_hot"
"""Operators of grouped experts, of what stands for them without such a kernel, and of a loop over experts."""

GROUPED = "grouped_mm_kept"
"""A second name for grouped_mm: on a GPU `generate` replaces the first for decoding."""

_GROUPED_CALLS = 2  # of a layer in a pass: gate and up together, down
_TRITON = "tokendyno_experts_"  # what the names of our kernels begin with; as many calls


def _settles(when: object, reason: str, source: str) -> Rule:
    return fallback(when, reason, source, becomes="auto", fix=(("experts", "auto"),))  # type: ignore[arg-type]


_ALWAYS = (
    _settles(
        lambda s: not s.facts.experts,
        "This model has no experts, so there is nothing to choose.",
        "transformers 5.22: PreTrainedModel._can_set_experts_implementation",
    ),
    _settles(
        lambda s: s.facts.experts > 0 and runs_mxfp4(s),
        "MXFP4 experts have their own kernels, so this choice has no effect.",
        "transformers 5.22: integrations/mxfp4.Mxfp4GptOssExperts",
    ),
    _settles(
        lambda s: s.facts.experts > 0 and not runs_mxfp4(s) and takes_hub_kernels(s),
        "With kernels=hub a kernel may replace the whole mixture of experts, so this choice may have no effect.",
        "transformers 5.22: integrations/hub_kernels, MegaBlocksMoeMLP",
    ),
)


def _refused(when: When, reason: str, source: str = "presets/kernels/matvec/build/torch-cuda/experts.py") -> Rule:
    return blocked(lambda s: s.facts.experts > 0 and when(s), reason, source, (("experts", "auto"),))


_TRITON_RULES = (
    _ALWAYS[0],
    _ALWAYS[2],
    _refused(
        routed.other_architecture,
        "These kernels are for the experts of gpt-oss and of the mixtures that are stored as Qwen3-MoE's are, and were "
        "not tried with this architecture.",
    ),
    _refused(routed.packed_otherwise, "These kernels read dense experts, and those of gpt-oss in MXFP4."),
    _refused(routed.no_gpu, "These kernels are in Triton, and run on NVIDIA GPUs only."),
    _refused(routed.old_gpu, "These kernels need compute capability 8.0 (Ampere) or later."),
    _refused(routed.old_triton, f"These kernels need triton {routed.TRITON} or later."),
    _refused(routed.no_kernels_package, "These kernels are loaded by the package kernels, which is not installed."),
    _refused(routed.odd_width, f"These kernels need experts whose width is a multiple of {routed.WIDTH}."),
    note(
        lambda s: routed.supported(s) and s.machine.capability != (9, 0),
        "Tile sizes were chosen on an H200, and nothing was run on another GPU.",
        "lab/measurements.md",
    ),
)


def _copies(trace: Trace, mixtures: Sequence[Any]) -> int:
    """How often a mixture copied the weights of its tokens' experts: a tensor of three dimensions is indexed."""
    matrices = [[tuple(local_part(one).shape) for one in mixture.parameters() if one.ndim == 3] for mixture in mixtures]
    weights = {shape for shapes in matrices for shape in shapes}
    copied = sum(n for (name, shapes), n in trace.shapes.items() if name == "aten::index" and shapes[0] in weights)
    return copied // max(1, len(matrices[0]))


class Experts(Optimization):
    """Told by the operators and kernels of a few extra tokens: a grouped GEMM, copied weights, a loop over experts, or
    kernels of our own."""

    name = "experts"
    title = "Experts (MoE)"
    summary = "How experts are computed: one after the other, in a grouped GEMM, from copies, or in our own kernels."
    default = "auto"
    order = 24
    leading = True
    aliases = {"": ("experts_implementation", "mixture of experts")}
    wishes = {"eager": "reference"}
    costs = {
        "eager": "time: the host waits for the routing of each layer",
        "batched_mm": "memory for copies at long prompts",
        "triton": "a second at the first token, to compile the kernels",
    }
    choices = (
        Choice(
            "auto",
            "auto",
            "The default of transformers: grouped_mm, and on a GPU batched_mm for decoding.",
        ),
        Choice(
            "eager",
            "eager",
            "A loop over the routed experts: two small GEMMs each, and the host synchronizes to find out which.",
            (
                *_ALWAYS,
                note(
                    lambda s: not experts_settled(s) and compiles(s),
                    "The loop needs to know on the host which experts were routed to: a graph break in every layer.",
                    _MOE,
                ),
            ),
            loss=12,
        ),
        Choice(
            "grouped_mm",
            "grouped_mm",
            "Tokens sorted by expert, one grouped GEMM for all; used for decoding on a GPU too.",
            (
                *_ALWAYS,
                note(
                    lambda s: not experts_settled(s) and s.machine.device == "cuda" and s.machine.capability < (8, 0),
                    "On this GPU the grouped GEMM is a loop of plain GEMMs: torch's own needs compute capability 8.0.",
                    f"{_MOE}: _can_use_grouped_mm",
                ),
                note(
                    lambda s: not experts_settled(s) and compiles(s) and compute_dtype(s) != "bfloat16",
                    "When compiled, the grouped GEMM is a loop of plain GEMMs unless weights are bfloat16.",
                    f"{_MOE}: _can_use_grouped_mm",
                ),
            ),
            loss=11,
        ),
        Choice(
            "batched_mm",
            "batched_mm",
            "The weights of each token's experts are copied for one batched GEMM: fast for single tokens, but long "
            "prompts need memory for all the copies.",
            _ALWAYS,
        ),
        Choice(
            "triton",
            "Triton kernels",
            "Kernels of tokendyno, which read the weights of the chosen experts where they lie, MXFP4 packed.",
            _TRITON_RULES,
        ),
    )

    def matters(self, facts: ModelFacts) -> bool:
        return facts.experts > 0

    def resolve(self, name: str, subject: Subject) -> str:
        """On a CPU, and with draft tokens, auto is grouped_mm throughout; elsewhere `generate` changes to batched_mm
        for plain decoding (generation/utils.py, `_sample`). Our kernels stand in for the Hub's with MXFP4. With nothing
        left to choose, every choice is auto."""
        if name == "triton" or (name == "auto" and runs_own_mxfp4(subject)):
            return "auto" if not subject.facts.experts or takes_hub_kernels(subject) else "triton"
        if experts_settled(subject):
            return "auto"
        throughout = subject.machine.device == "cpu" or drafts(subject)
        return "grouped_mm" if name == "auto" and throughout else name

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        if name == self.resolve("auto", subject) != "triton":
            return plan
        return msgspec.structs.replace(plan, load=msgspec.structs.replace(plan.load, experts=name))

    def write(self, script: Script, plan: Plan) -> None:
        load = plan.load
        if load.experts == "triton":
            script.define("worker/patch/experts.py", "use_triton")
            script.patch.insert(0, f"use_triton(model, {str(kernel_packages.ROUTED)!r})")  # before layers are replaced
            if load.quantization == "mxfp4" or (load.quantization == "none" and load.source.kind != "random"):
                script.define("worker/load/quantization.py", "read_packed")
                script.prepare.append("read_packed(True)")
        elif load.experts is not None:
            script.define("worker/patch/experts.py", "set_experts")
            script.patch.append(f"set_experts(model, {load.experts!r})")
            if load.experts != "grouped_mm" or load.device == "cpu":  # else `generate` decodes with batched_mm
                script.shown["experts_implementation"] = repr(load.experts)

    def find(self, observation: Observation) -> Finding:
        """Counts in the trace in which way each mixture computed its experts in each pass."""
        mixtures = [module for module in observation.model.modules() if hasattr(module, "_is_expert_parallel")]
        layers = len(mixtures)
        if not layers:
            nothing = "no module holds experts whose implementation can be chosen"
            return Finding(self.name, "auto", nothing, outcome="not_applicable")
        trace, load = observation.trace(), observation.plan.load
        calls = sum(trace.ops[name] for name in (GROUPED_MM, FALLBACK))
        own = sum(n for name, n in trace.kernels.items() if name.startswith(_TRITON))
        ways = Counter(
            grouped_mm=calls // _GROUPED_CALLS,
            batched_mm=_copies(trace, mixtures),
            eager=trace.ops[LOOP],
            triton=own // _GROUPED_CALLS,
        )
        way = max(ways, key=ways.__getitem__)
        seen = ways[way]
        if way == "triton":  # kernels are seen in replayed graphs and within whole layers too
            every = layers * traced_passes(observation)
            proof = f"{own} calls of our kernels in {trace.steps} passes through {layers} mixtures, two a mixture"
            return Finding(self.name, way, proof, min(seen, every), every)
        if hidden := hides(observation):
            replayed = sum(n for name, n in trace.kernels.items() if "GroupProblemShape" in name)
            if ways["grouped_mm"] >= layers:  # the prompt's pass is never compiled
                only_there = max(calls, replayed) <= _GROUPED_CALLS * layers * prompt_passes(observation)
                way, seen = ("auto" if only_there else "grouped_mm"), ways["grouped_mm"]
        elif load.device == "cuda" and load.experts is None and seen < layers * traced_passes(observation):
            way = "auto"  # `generate` changes to batched_mm for decoding
            seen = min(layers * prompt_passes(observation), ways["grouped_mm"]) + min(
                layers * (trace.steps - 1), ways["batched_mm"]
            )
        elif load.device == "cuda" and load.experts is None and trace.steps == 1:
            way = "auto"
        reached, expected = coverage(observation, seen, layers)
        if reached and expected and way != "auto":  # what was computed in two ways may have been used in either
            reached = max(0, min(reached, expected - (ways.total() - ways[way])))
        proof = (
            f"{trace.steps} passes through {layers} mixtures: {calls} grouped GEMM calls, {ways['batched_mm']} batches "
            f"of copied weights, {ways['eager']} loops over experts"
        )
        if hidden:
            proof += f"; decode steps ran {hidden}"
        return Finding(self.name, way if seen else "auto", proof, reached or 0, expected or layers)


AXIS = Experts()
