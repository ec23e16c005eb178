"""Told by the operators and kernels of a few extra tokens: a grouped GEMM, copied weights, a loop over experts, or
kernels of our own."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tokendyno.backend.evidence import Finding
from tokendyno.backend.worker.prove.observation import Observation, coverage, hidden_by, prompt_passes, traced_passes
from tokendyno.backend.worker.prove.profile import Trace
from tokendyno.backend.worker.prove.tensor_bytes import local_part

_GROUPED_CALLS = 2  # of a layer in a pass, of our kernels too: gate and up together, down


def _copies(trace: Trace, mixtures: Sequence[Any]) -> int:
    """How often a mixture copied its tokens' experts: that is an index into a weight of shape (experts, m, n)."""
    every = [weight for mixture in mixtures for weight in mixture.parameters() if weight.ndim == 3]
    weights = {tuple(local_part(weight).shape) for weight in every}
    copied = sum(n for (name, shapes), n in trace.shapes.items() if name == "aten::index" and shapes[0] in weights)
    return copied // max(1, len([weight for weight in mixtures[0].parameters() if weight.ndim == 3]))


def find(observation: Observation) -> Finding:
    """Counts in the trace in which way each mixture computed its experts in each pass."""
    mixtures = [module for module in observation.model.modules() if hasattr(module, "_is_expert_parallel")]
    layers = len(mixtures)
    if not layers:
        reason = "no module holds experts whose implementation can be chosen"
        return Finding("experts", "auto", reason, outcome="not_applicable")
    trace, load = observation.trace(), observation.plan.load
    calls = trace.ops["aten::_grouped_mm"] + trace.ops["transformers::grouped_mm_fallback"]
    own_calls = sum(n for name, n in trace.kernels.items() if name.startswith("tokendyno_experts_"))
    ways = Counter(
        grouped_mm=calls // _GROUPED_CALLS,
        batched_mm=_copies(trace, mixtures),
        eager=trace.ops["aten::one_hot"],
        triton=own_calls // _GROUPED_CALLS,
    )
    way = max(ways, key=ways.__getitem__)
    seen = ways[way]
    all_calls = layers * traced_passes(observation)
    if way == "triton":  # kernels are seen in replayed graphs and within whole layers too
        proof = f"{own_calls} calls of our kernels in {trace.steps} passes through {layers} mixtures, two a mixture"
        return Finding("experts", way, proof, min(seen, all_calls), all_calls)
    if hidden := hidden_by(observation):
        replayed = sum(n for name, n in trace.kernels.items() if "GroupProblemShape" in name)
        if ways["grouped_mm"] >= layers:  # the prompt's pass is never compiled
            only_there = max(calls, replayed) <= _GROUPED_CALLS * layers * prompt_passes(observation)
            way, seen = ("auto" if only_there else "grouped_mm"), ways["grouped_mm"]
    elif load.device == "cuda" and load.experts is None and (trace.steps == 1 or seen < all_calls):
        way = "auto"  # `generate` changes to batched_mm for decoding
        seen = min(layers * prompt_passes(observation), ways["grouped_mm"])
        seen += min(layers * (trace.steps - 1), ways["batched_mm"])
    reached, expected = coverage(observation, seen, layers)
    proof = (
        f"{trace.steps} passes through {layers} mixtures: {calls} grouped GEMM calls, {ways['batched_mm']} batches "
        f"of copied weights, {ways['eager']} loops over experts"
    )
    if hidden:
        proof += f"; decode steps ran {hidden}"
    return Finding("experts", way if seen else "auto", proof, reached or 0, expected or layers)
