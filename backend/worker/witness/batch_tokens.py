"""Told by the widest steps: filled up to the budget, and none beyond it."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.worker.prove.observation import Observation


def find(observation: Observation) -> Finding:
    """Where no step was filled, a larger budget would have changed nothing."""
    counts = observation.counts.pages
    widest, full = counts.widest_step_tokens, counts.full_steps
    planned = observation.plan.generate.batch.step_tokens
    proof = f"the widest of {counts.paged_steps:,} steps had {widest:,} tokens; {full:,} had {planned:,}"
    if widest > planned:
        return Finding("batch_tokens", str(widest), proof)
    if not full:
        return Finding("batch_tokens", str(planned), f"{proof}: no step was filled", outcome="not_applicable")
    return Finding("batch_tokens", str(planned), proof)
