"""Told by the n-gram lookups that were counted, and by tokens per decode step."""

from tokendyno.backend.evidence import Finding, Outcome
from tokendyno.backend.worker.prove.observation import Observation


def find(observation: Observation) -> Finding:
    """Where nothing was proposed, the text repeats nothing."""
    counts = observation.counts.drafts
    if not counts.lookups:
        return Finding("speculation", "off", "no draft tokens were looked up")
    accepted, steps = counts.accepted_tokens, counts.steps
    proof = (
        f"{steps + accepted} tokens in {steps} steps: {counts.lookups} lookups proposed "
        f"{counts.draft_tokens} draft tokens, {accepted} accepted"
    )
    outcome: Outcome = "" if counts.draft_tokens else "not_applicable"
    return Finding("speculation", "prompt-lookup", proof, counts.lookups, steps, outcome)
