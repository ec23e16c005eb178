"""Who comes first when a step of continuous batching cannot take everybody."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.base import Choice
from tokendyno.backend.optimizations.many_requests import ManyRequests, only_continuous
from tokendyno.backend.optimizations.proof import Observation
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.plan import Plan

_RULES = (only_continuous("this scheduler"),)


class Scheduler(ManyRequests):
    """Told by the order of requests within steps that had both a prompt under way and requests that decode."""

    name = "scheduler"
    title = "Scheduler"
    summary = "Who comes first when a step of continuous batching cannot take everybody."
    default = "fifo"
    order = 68
    aliases = {"": ("scheduler_type",)}
    choices = (
        Choice("fifo", "first in, first out", "Requests that decode come first, so that their tokens are not delayed."),
        Choice(
            "prefill_first",
            "prefill first",
            "Prompts that were begun come first, so that first tokens come sooner.",
            _RULES,
        ),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        return plan.batched(scheduler="prefill_first" if name == "prefill_first" else "fifo")

    def find(self, observation: Observation) -> Finding:
        """Without such steps both schedulers do the same."""
        if unseen := self.without_pages(observation):
            return unseen
        counts = observation.counts.pages
        contended, prefill = counts.contended_steps, counts.prefill_first_steps
        if not contended:
            none = "no step had both a prompt under way and requests that decode: both schedulers do the same"
            planned = observation.plan.generate.batch.scheduler
            return Finding(self.name, planned, none, outcome="not_applicable")
        proof = (
            f"{prefill:,} of {contended:,} steps with a prompt under way and requests that decode took the prompt first"
        )
        effective = "prefill_first" if 2 * prefill > contended else "fifo"
        return Finding(self.name, effective, proof, max(prefill, contended - prefill), contended)


AXIS = Scheduler()
