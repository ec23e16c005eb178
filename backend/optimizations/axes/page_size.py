"""How many tokens a page of the KV cache holds in continuous batching."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.base import Choice
from tokendyno.backend.optimizations.many_requests import ManyRequests, only_continuous
from tokendyno.backend.optimizations.proof import Observation
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.plan import Plan

_RULES = (only_continuous("pages"),)


class PageSize(ManyRequests):
    """Told by the pages that requests took, against the pages that their lengths need."""

    name = "page_size"
    title = "Page size"
    summary = "Tokens in a page of the KV cache: small pages waste less room at the end of a request."
    default = "256"
    order = 64
    aliases = {"": ("block_size",)}
    choices = (
        Choice("256", "256 tokens", "The page size of transformers; what FlashAttention 2 needs."),
        *(Choice(str(n), f"{n} tokens", f"Pages of {n} tokens.", _RULES) for n in (16, 32, 64, 128)),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        return plan.batched(page_tokens=int(name))

    def find(self, observation: Observation) -> Finding:
        """A page of another size would have been taken more often, or less."""
        if unseen := self.without_pages(observation):
            return unseen
        counts = observation.counts.pages
        size = counts.page_tokens
        taken, needed = counts.pages_taken or 0, counts.pages_needed
        proof = f"requests took {taken:,} pages of {size} tokens; by their lengths they need {needed:,}"
        if counts.restarts:
            more = f"; {counts.restarts:,} times a request lost its pages and took them again"
            return Finding(self.name, str(size), proof + more)
        if counts.pages_taken is None:
            only = f"a cache of pages of {size} tokens, all of layers with a sliding window"
            return Finding(self.name, str(size), only)
        return Finding(self.name, str(size), proof, min(taken, needed), max(taken, needed))


AXIS = PageSize()
