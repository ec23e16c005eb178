"""How many requests an arm may have in work at once."""

from tokendyno.backend.optimizations.base import Choice, ManyRequests, Subject, blocked
from tokendyno.backend.optimizations.conditions import batches_continuously, batches_statically
from tokendyno.backend.plan import Plan

_RULES = (
    blocked(
        lambda s: not (batches_statically(s) or batches_continuously(s)),
        "Without batching, one request is in work at a time.",
        "backend/worker/runners/static_batch.py: rows_of",
        (("batching", "static"),),
    ),
)


class BatchSize(ManyRequests):
    name = "batch_size"
    title = "Batch size"
    summary = "Requests in work at once: rows of a static batch, or requests in a step of continuous batching."
    default = "auto"
    order = 61
    aliases = {"": ("max_requests_per_batch",)}
    choices = (
        Choice("auto", "auto", "As many as the run allows at once, for both arms."),
        *(Choice(str(n), str(n), f"At most {n} at once.", _RULES) for n in (1, 2, 4, 8, 16, 32, 64, 128, 256)),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        return plan.batched(rows=0 if name == "auto" else int(name))


AXIS = BatchSize()
