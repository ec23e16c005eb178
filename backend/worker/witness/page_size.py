"""Told by the pages that requests took, against the pages that their lengths need."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.worker.prove.observation import Observation


def find(observation: Observation) -> Finding:
    """A page of another size would have been taken more often, or less."""
    counts = observation.counts.pages
    size = counts.page_tokens
    taken, needed = counts.pages_taken or 0, counts.pages_needed
    proof = f"requests took {taken:,} pages of {size} tokens; by their lengths they need {needed:,}"
    if counts.restarts:
        proof += f"; {counts.restarts:,} times a request lost its pages and took them again"
        return Finding("page_size", str(size), proof)
    if counts.pages_taken is None:
        return Finding(
            "page_size", str(size), f"a cache of pages of {size} tokens, all of layers with a sliding window"
        )
    return Finding("page_size", str(size), proof, min(taken, needed), max(taken, needed))
