"""Told by the n-gram lookups that were counted, by tokens per decode step, and by the greedy text itself."""

from tokendyno.backend.counts import Drafts
from tokendyno.backend.evidence import Finding, Outcome
from tokendyno.backend.worker.prove.observation import Observation


def find(observation: Observation) -> Finding:
    counts = observation.counts.drafts
    if not counts.lookups:
        return Finding("speculation", "off", "no draft tokens were looked up")
    accepted, steps = counts.accepted_tokens, counts.steps
    proof = (
        f"{steps + accepted} tokens in {steps} steps: {counts.lookups} lookups proposed "
        f"{counts.draft_tokens} draft tokens, {accepted} accepted"
    )
    drafts = counts.draft_tokens
    missed = max(0, (counts.due_drafts or 0) - drafts) if drafts else 0  # without any there is no effect
    if missed:
        proof += f"; {missed} more were to be found in the text"
    return Finding("speculation", "prompt-lookup", proof, counts.lookups, steps + missed, _outcome(counts))


def _outcome(counts: Drafts) -> Outcome:
    """A text that repeats nothing leaves nothing to propose, and one that goes on otherwise nothing to accept."""
    if not counts.draft_tokens:
        return "not_applicable" if counts.due_drafts == 0 and not counts.accepted_tokens else "no_effect"
    return "no_effect" if not counts.accepted_tokens and counts.due_accepted else ""
