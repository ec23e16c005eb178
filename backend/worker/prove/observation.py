"""What a witness may look at to find out what was in effect, and what several witnesses read from it."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch._dynamo.utils as dynamo

from tokendyno.backend.counts import RunCounts
from tokendyno.backend.plan import Plan
from tokendyno.backend.worker.prove.profile import NO_TRACE, Trace, regions


@dataclass(slots=True)
class Observation:
    """What the worker shows to each axis after a run.

    cache    the `Cache` filled by the measured run; None for an encoder
    plan     what was planned: context, never proof
    gather   what every rank gives, by rank, where several run the model; returns once all have given theirs
    """

    model: Any
    cache: Any
    plan: Plan
    trace: Callable[[], Trace] = lambda: NO_TRACE
    counts: RunCounts = field(default_factory=RunCounts)
    gather: Callable[[bytes], Sequence[bytes]] = lambda mine: [mine]


def prompt_passes(observation: Observation) -> int:
    """Passes in which a prompt is read as planned, in a profile as in the measured run."""
    return max(1, observation.counts.prefill.planned_prompt_passes)


def traced_passes(observation: Observation) -> int:
    """Passes through the model that the profile saw."""
    return max(1, observation.trace().steps) - 1 + prompt_passes(observation)


def hidden_by(observation: Observation) -> str:
    """Why operators of a decode step cannot be seen in the trace, as the end of a sentence; "" if all can be."""
    trace = observation.trace()
    if compiled_calls(trace):
        return "in compiled code"
    if any("GraphLaunch" in name for name in trace.runtime):
        return "in replayed CUDA graphs"
    if trace.matching("tokendyno_matvec", "::decoder_layer"):
        return "in kernels that compute whole layers or products"
    return ""


def coverage(observation: Observation, seen: int, per_pass: int) -> tuple[int | None, int | None]:
    """(reached, expected) calls: each pass should make `per_pass`, and the trace shows `seen`. Where steps are hidden
    (`hidden_by`), only those over the prompt are expected; (None, None) where no call at all is seen, as of an encoder
    that is compiled as a whole."""
    all_calls = per_pass * traced_passes(observation)
    if seen >= all_calls or not hidden_by(observation):
        expected = all_calls
    elif seen:
        expected = per_pass * prompt_passes(observation)
    else:
        return None, None
    return min(seen, expected), expected


def products(ops: Counter[str]) -> int:
    """Products of matrices among these operators; an attention counts once, unless it calls products."""
    kinds = "mm addmm bmm baddbmm _int_mm _scaled_mm _grouped_mm _weight_int8pack_mm _weight_int4pack_mm"
    return sum(ops[f"aten::{kind}"] for kind in (*kinds.split(), "scaled_dot_product_attention"))


def compiled_calls(trace: Trace) -> Counter[str]:
    """Calls of compiled graphs by compile id, without those of flex_attention, which compiles itself."""
    return regions(trace.ops, lambda graph: "flex_attention" not in (graph.co_filename or ""))


def symbolic_graphs(trace: Trace) -> tuple[list[str], int]:
    """Graphs in the profile whose guards have symbolic shapes, and how many graphs there are."""
    ran = compiled_calls(trace)
    records = dynamo.get_compilation_metrics() if ran else ()
    symbolic = {record.compile_id for record in records if record.compile_id in ran and record.shape_env_guard_count}
    return sorted(symbolic), len(ran)
