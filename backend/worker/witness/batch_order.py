"""Told by the order in which requests that had arrived were put into batches."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.worker.prove.observation import Observation


def find(observation: Observation) -> Finding:
    """Of each two requests in a row that had both arrived: whether the earlier or the shorter came first."""
    counts = observation.counts
    pairs = counts.static.order_pairs
    in_order = {"arrival": counts.static.order_arrival, "sorted": counts.static.order_sorted}
    if counts.pages.paged_steps:
        return Finding("batch_order", "arrival", "continuous batching forms no batches", outcome="not_applicable")
    if not pairs:
        return Finding("batch_order", "arrival", "no two requests could change places", outcome="not_applicable")
    planned = observation.plan.generate.batch.order
    effective = planned if in_order[planned] == pairs else max(in_order, key=lambda name: in_order[name])
    proof = (
        f"of {pairs} pairs of requests that followed each other, {in_order['arrival']} were in the order of arrival "
        f"and {in_order['sorted']} in the order of their lengths"
    )
    return Finding("batch_order", effective, proof, in_order[effective], pairs)
