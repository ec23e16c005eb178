"""Whether the next step of continuous batching is prepared while the GPU works on this one."""

from tokendyno.backend.optimizations.base import Choice, ManyRequests, Subject, blocked
from tokendyno.backend.optimizations.conditions import PAGED, only_continuous
from tokendyno.backend.plan import Plan

_RULES = (
    only_continuous("asynchronous steps"),
    blocked(
        lambda s: not s.cuda,
        "Asynchronous batching needs CUDA streams, and so an NVIDIA GPU.",
        f"{PAGED}/input_outputs.py: ContinuousBatchingAsyncIOs",
    ),
)


class AsyncBatching(ManyRequests):
    name = "async_batching"
    title = "Asynchronous batching"
    summary = "Whether the next step is prepared while the GPU works on this one."
    default = "off"
    off = "off"
    in_pages = True
    order = 70
    aliases = {"on": ("use_async_batching",)}
    choices = (
        Choice("off", "off", "A step is prepared when the one before it is done."),
        Choice(
            "on",
            "on",
            "A step is prepared while the GPU works on the one before it, at the cost of a second set of inputs.",
            _RULES,
        ),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        return plan.batched(asynchronous=name == "on")


AXIS = AsyncBatching()
