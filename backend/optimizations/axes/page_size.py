"""How many tokens a page of the KV cache holds in continuous batching."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.base import Choice, Optimization
from tokendyno.backend.optimizations.conditions import batches_continuously
from tokendyno.backend.optimizations.proof import Observation
from tokendyno.backend.optimizations.subject import Subject, blocked
from tokendyno.backend.plan import Plan

_PAGED = "transformers 5.22: generation/continuous_batching"
_RULES = (
    blocked(
        lambda s: not batches_continuously(s),
        "Only continuous batching has pages.",
        _PAGED,
        (("batching", "continuous"),),
    ),
)


class PageSize(Optimization):
    """Told by the pages that requests took, against the pages that their lengths need."""

    name = "page_size"
    title = "Page size"
    summary = "Tokens in a page of the KV cache: small pages waste less room at the end of a request."
    default = "256"
    order = 64
    decoders_only = True
    many_requests = True
    choices = (
        Choice("256", "256 tokens", "The page size of transformers; what FlashAttention 2 needs."),
        Choice("16", "16 tokens", "Pages of 16 tokens.", _RULES),
        Choice("32", "32 tokens", "Pages of 32 tokens.", _RULES),
        Choice("64", "64 tokens", "Pages of 64 tokens.", _RULES),
        Choice("128", "128 tokens", "Pages of 128 tokens.", _RULES),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        return plan.batched(page_tokens=int(name))

    def find(self, observation: Observation) -> Finding:
        """A page of another size would have been taken more often, or less."""
        counts = observation.counts
        if not counts.paged_steps:
            return Finding(self.name, self.default, "no step of continuous batching", outcome="not_applicable")
        size = int(counts.page_tokens or 0)
        taken, needed = int(counts.pages_taken or 0), int(counts.pages_needed or 0)
        proof = f"requests took {taken:,} pages of {size} tokens; by their lengths they need {needed:,}"
        if counts.restarts:
            more = f"; {int(counts.restarts):,} times a request lost its pages and took them again"
            return Finding(self.name, str(size), proof + more)
        if counts.pages_taken is None:
            only = f"a cache of pages of {size} tokens, all of layers with a sliding window"
            return Finding(self.name, str(size), only)
        return Finding(self.name, str(size), proof, min(taken, needed), max(taken, needed))


AXIS = PageSize()
