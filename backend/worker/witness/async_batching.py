"""Told by the steps that were prepared before the step before them had been read."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.worker.prove.observation import Observation


def find(observation: Observation) -> Finding:
    """The first step has none before it."""
    counts = observation.counts.pages
    steps, overlapped = counts.paged_steps, counts.overlapped_steps
    proof = f"{overlapped:,} of {steps:,} steps were prepared while the step before was under way"
    if not overlapped:
        return Finding("async_batching", "off", proof)
    return Finding("async_batching", "on", proof, min(overlapped, steps - 1), steps - 1)
