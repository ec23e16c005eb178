"""Told by the order of requests within steps that had both a prompt under way and requests that decode."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.worker.prove.observation import Observation


def find(observation: Observation) -> Finding:
    """Without such steps both schedulers do the same."""
    counts = observation.counts.pages
    contended, prefill = counts.contended_steps, counts.prefill_first_steps
    if not contended:
        reason = "no step had both a prompt under way and requests that decode: both schedulers do the same"
        planned = observation.plan.generate.batch.scheduler
        return Finding("scheduler", planned, reason, outcome="not_applicable")
    proof = f"{prefill:,} of {contended:,} steps with a prompt under way and requests that decode took the prompt first"
    effective = "prefill_first" if 2 * prefill > contended else "fifo"
    return Finding("scheduler", effective, proof, max(prefill, contended - prefill), contended)
