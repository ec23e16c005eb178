"""Told by the fullest step."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.units import plural
from tokendyno.backend.worker.prove.observation import Observation


def find(observation: Observation) -> Finding:
    """A smaller limit than the fullest step was not in effect; one that no step reached changed nothing."""
    counts, batch = observation.counts.requests, observation.plan.generate.batch
    steps, requests = counts.batch_steps, counts.batch_requests
    allowed, fullest = counts.slot_steps // max(1, steps), counts.fullest_step
    planned = min(batch.rows or allowed, requests)
    name = str(batch.rows) if batch.rows else "auto"
    proof = f"the fullest of {steps:,} steps held {fullest} of {plural(requests, 'request')}"
    if fullest > planned or allowed != planned:
        return Finding("batch_size", str(fullest), f"{proof}, where {planned} were planned")
    if fullest < planned and batch.kind != "off":
        return Finding("batch_size", name, f"{proof}: none was full", outcome="not_applicable")
    return Finding("batch_size", name, proof)
