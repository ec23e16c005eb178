"""How many requests an arm may have in work at once."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.base import Choice
from tokendyno.backend.optimizations.conditions import batches_continuously, batches_statically
from tokendyno.backend.optimizations.many_requests import ManyRequests
from tokendyno.backend.optimizations.proof import Observation
from tokendyno.backend.optimizations.subject import Subject, blocked
from tokendyno.backend.plan import Plan

AUTO = "auto"
_RULES = (
    blocked(
        lambda s: not (batches_statically(s) or batches_continuously(s)),
        "Without batching, one request is in work at a time.",
        "backend/worker/runners/static_batch.py: rows_of",
        (("batching", "static"),),
    ),
)


class BatchSize(ManyRequests):
    """Told by the fullest step."""

    name = "batch_size"
    title = "Batch size"
    summary = "Requests in work at once: rows of a static batch, or requests in a step of continuous batching."
    default = AUTO
    order = 61
    aliases = {"": ("max_requests_per_batch",)}
    choices = (
        Choice(AUTO, AUTO, "As many as the run allows at once, for both arms."),
        *(Choice(str(n), str(n), f"At most {n} at once.", _RULES) for n in (1, 2, 4, 8, 16, 32, 64, 128, 256)),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        return plan.batched(rows=0 if name == AUTO else int(name))

    def find(self, observation: Observation) -> Finding:
        """A smaller limit than the fullest step was not in effect; one that no step reached changed nothing."""
        counts, batch = observation.counts.requests, observation.plan.generate.batch
        steps, requests = counts.batch_steps, counts.batch_requests
        allowed, fullest = counts.slot_steps // max(1, steps), counts.fullest_step
        planned = min(batch.rows or allowed, requests)
        name = str(batch.rows) if batch.rows else AUTO
        proof = f"the fullest of {steps:,} steps held {fullest} of {requests} requests"
        if fullest > planned or allowed != planned:
            return Finding(self.name, str(fullest), f"{proof}, where {planned} were planned")
        if fullest < planned and batch.kind != "off":
            return Finding(self.name, name, f"{proof}: none was full", outcome="not_applicable")
        return Finding(self.name, name, proof)


AXIS = BatchSize()
