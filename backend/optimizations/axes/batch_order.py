"""In which order static batches are formed from the requests that have arrived."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.base import Choice
from tokendyno.backend.optimizations.conditions import batches_statically
from tokendyno.backend.optimizations.many_requests import ManyRequests
from tokendyno.backend.optimizations.proof import Observation
from tokendyno.backend.optimizations.subject import Subject, blocked, note
from tokendyno.backend.plan import Plan

_STATIC = "backend/worker/runners/static_batch.py"
_SORTED = (
    blocked(
        lambda s: not batches_statically(s),
        "Only static batches are formed in an order; continuous batching takes requests as they arrive.",
        _STATIC,
        (("batching", "static"),),
    ),
    note(
        lambda s: True,
        "Sorting needs to know how long each output will be, which a server does not: here every request generates all "
        "the tokens that it allows. A request with a long output may wait until the end.",
        _STATIC,
    ),
)


class BatchOrder(ManyRequests):
    """Told by the order in which requests that had arrived were put into batches."""

    name = "batch_order"
    title = "Order of batches"
    summary = "The order in which static batches are formed from the requests that have arrived."
    default = "arrival"
    order = 62
    choices = (
        Choice("arrival", "arrival", "First come, first served."),
        Choice("sorted", "sorted by length", "Short outputs first, so that rows of a batch end together.", _SORTED),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        return plan.batched(order="sorted" if name == "sorted" else "arrival")

    def find(self, observation: Observation) -> Finding:
        """Of each two requests in a row that had both arrived: whether the earlier or the shorter came first."""
        counts = observation.counts
        pairs = counts.static.order_pairs
        by = {"arrival": counts.static.order_arrival, "sorted": counts.static.order_sorted}
        if counts.pages.paged_steps or not pairs:
            why = (
                "continuous batching forms no batches"
                if counts.pages.paged_steps
                else "no two requests could change places"
            )
            return Finding(self.name, self.default, why, outcome="not_applicable")
        planned = observation.plan.generate.batch.order
        effective = planned if by[planned] == pairs else max(by, key=lambda name: by[name])
        proof = (
            f"of {pairs} pairs of requests that followed each other, {by['arrival']} were in the order of arrival "
            f"and {by['sorted']} in the order of their lengths"
        )
        return Finding(self.name, effective, proof, by[effective], pairs)


AXIS = BatchOrder()
