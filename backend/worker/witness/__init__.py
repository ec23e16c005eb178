"""What was in effect: for each axis a module of its name, whose `find` tells it by effects and never by settings. Those
of many requests share one."""

import importlib
from collections.abc import Callable

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations import Optimization, all_axes
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.witness.batching import BY_AXIS


def find(axis: str, observation: Observation) -> Finding:
    tell = BY_AXIS.get(axis) or importlib.import_module(f"{__name__}.{axis}").find
    finding: Finding = tell(observation)
    return finding


def find_all(observation: Observation, step: Callable[[float], None] = lambda fraction: None) -> list[Finding]:
    """One finding for each axis; "unknown", with the error, where its witness fails. `step` gets the fraction done."""
    findings = []
    for i, axis in enumerate(all_axes()):
        step(i / len(all_axes()))
        if reason := _nothing_to_choose(axis, observation):
            findings.append(Finding(axis.name, axis.default, reason, outcome="not_applicable"))
            continue
        try:
            findings.append(find(axis.name, observation))
        except Exception as error:
            findings.append(Finding(axis.name, "unknown", f"the probe failed: {type(error).__name__}: {error}"[:300]))
    return findings


def _nothing_to_choose(axis: Optimization, observation: Observation) -> str:
    """Why an axis makes no difference to this run; "" where it can."""
    counts = observation.counts
    if axis.many_requests and not counts.requests.batch_requests:
        return "one prompt: no other request shares the model"
    if axis.in_pages and not counts.pages.paged_steps:
        return "no step of continuous batching"
    if axis.many_requests or not axis.decoders_only or observation.cache is not None:
        return ""
    if counts.pages.paged_steps:
        return "continuous batching has a loop and a KV cache of its own: see batching"
    return "nothing was decoded, and no KV cache is kept"
