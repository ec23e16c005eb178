"""Asks every axis what was in effect."""

from collections.abc import Callable

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations import Observation, Optimization, all_axes


def find_all(observation: Observation, step: Callable[[float], None] = lambda fraction: None) -> list[Finding]:
    """One finding for each axis; "unknown", with the error, where its probe fails. `step` is told the fraction done."""
    found = []
    for i, axis in enumerate(all_axes()):
        step(i / len(all_axes()))
        if nothing := _nothing(axis, observation):
            found.append(Finding(axis.name, axis.default, nothing, outcome="not_applicable"))
            continue
        try:
            found.append(axis.find(observation))
        except Exception as error:
            found.append(Finding(axis.name, "unknown", f"the probe failed: {type(error).__name__}: {error}"[:300]))
    return found


def _nothing(axis: Optimization, observation: Observation) -> str:
    """Why there is nothing to choose on an axis in this run; "" where there is."""
    if axis.many_requests:
        return "" if observation.counts.requests.batch_requests else "one prompt: no other request shares the model"
    if not axis.decoders_only or observation.cache is not None:
        return ""
    if observation.counts.pages.paged_steps:
        return "continuous batching has a loop and a KV cache of its own: see batching"
    return "nothing was decoded, and no KV cache is kept"
