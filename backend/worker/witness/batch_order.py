"""Told by the order in which requests that had arrived were put into batches."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.worker.prove.observation import Observation


def find(observation: Observation) -> Finding:
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
        return Finding("batch_order", "arrival", why, outcome="not_applicable")
    planned = observation.plan.generate.batch.order
    effective = planned if by[planned] == pairs else max(by, key=lambda name: by[name])
    proof = (
        f"of {pairs} pairs of requests that followed each other, {by['arrival']} were in the order of arrival "
        f"and {by['sorted']} in the order of their lengths"
    )
    return Finding("batch_order", effective, proof, by[effective], pairs)
