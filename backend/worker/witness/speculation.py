"""Told by the n-gram lookups that were counted, and by tokens per decode step."""

from tokendyno.backend.evidence import Finding, Outcome
from tokendyno.backend.worker.prove.observation import Observation


def find(observation: Observation) -> Finding:
    """Without an accepted token nothing was gained: the text repeats nothing, or went on otherwise."""
    counts = observation.counts.drafts
    if not counts.lookups:
        return Finding("speculation", "off", "no draft tokens were looked up")
    accepted, steps = counts.accepted_tokens, counts.steps
    proof = (
        f"{steps + accepted} tokens in {steps} steps: {counts.lookups} lookups proposed "
        f"{counts.draft_tokens} draft tokens, {accepted} accepted"
    )
    outcome: Outcome = "" if accepted and counts.draft_tokens else "no_effect"
    return Finding("speculation", "prompt-lookup", proof, counts.lookups, steps, outcome)
