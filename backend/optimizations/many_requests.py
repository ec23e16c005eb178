"""What axes about many requests have in common."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.base import Optimization
from tokendyno.backend.optimizations.conditions import batches_continuously
from tokendyno.backend.optimizations.proof import Observation
from tokendyno.backend.optimizations.subject import Rule, blocked

PAGED = "transformers 5.22: generation/continuous_batching"


class ManyRequests(Optimization):
    """Base of these axes: a single prompt has nothing to choose, and an encoder generates nothing."""

    decoders_only = True
    many_requests = True

    def without_pages(self, observation: Observation) -> Finding | None:
        """The finding where continuous batching took no step; None where it did."""
        if observation.counts.pages.paged_steps:
            return None
        return Finding(self.name, self.default, "no step of continuous batching", outcome="not_applicable")


def only_continuous(what: str) -> Rule:
    """Refuses a choice that continuous batching alone has."""
    return blocked(
        lambda s: not batches_continuously(s),
        f"Only continuous batching has {what}.",
        PAGED,
        (("batching", "continuous"),),
    )
