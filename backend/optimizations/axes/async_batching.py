"""Whether the next step of continuous batching is prepared while the GPU works on this one."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.base import Choice
from tokendyno.backend.optimizations.many_requests import PAGED, ManyRequests, only_continuous
from tokendyno.backend.optimizations.proof import Observation
from tokendyno.backend.optimizations.subject import Subject, blocked
from tokendyno.backend.plan import Plan

_RULES = (
    only_continuous("asynchronous steps"),
    blocked(
        lambda s: not s.cuda,
        "Asynchronous batching needs CUDA streams, and so an NVIDIA GPU.",
        f"{PAGED}/input_outputs.py: ContinuousBatchingAsyncIOs",
        (("async_batching", "off"),),
    ),
)


class AsyncBatching(ManyRequests):
    """Told by the steps that were prepared before the step before them had been read."""

    name = "async_batching"
    title = "Asynchronous batching"
    summary = "Whether the next step is prepared while the GPU works on this one."
    default = "off"
    off = "off"
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

    def find(self, observation: Observation) -> Finding:
        """The first step has none before it."""
        if unseen := self.without_pages(observation):
            return unseen
        counts = observation.counts.pages
        steps, overlapped = counts.paged_steps, counts.overlapped_steps
        proof = f"{overlapped:,} of {steps:,} steps were prepared while the step before was under way"
        if not overlapped:
            return Finding(self.name, "off", proof)
        return Finding(self.name, "on", proof, min(overlapped, steps - 1), steps - 1)


AXIS = AsyncBatching()
