"""How many tokens one step of continuous batching may process."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.base import Choice
from tokendyno.backend.optimizations.many_requests import ManyRequests, only_continuous
from tokendyno.backend.optimizations.proof import Observation
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.plan import Plan

_RULES = (only_continuous("a token budget for each step"),)


class BatchTokens(ManyRequests):
    """Told by the widest steps: filled up to the budget, and none beyond it."""

    name = "batch_tokens"
    title = "Tokens a step"
    summary = "Tokens that one step may process, those of prompts included: long prompts are cut into several steps."
    default = "512"
    order = 66
    aliases = {"": ("max_batch_tokens",)}
    choices = (
        Choice("512", "512", "Prompts of more tokens are cut into steps of 512."),
        *(
            Choice(str(n), f"{n:,}", f"Prompts of more tokens are cut into steps of {n:,}.", _RULES)
            for n in (128, 256, 1024, 2048, 4096, 8192)
        ),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        return plan.batched(step_tokens=int(name))

    def find(self, observation: Observation) -> Finding:
        """Where no step was filled, a larger budget would have changed nothing."""
        if unseen := self.without_pages(observation):
            return unseen
        counts = observation.counts.pages
        widest, full = counts.widest_step_tokens, counts.full_steps
        planned = observation.plan.generate.batch.step_tokens
        proof = f"the widest of {counts.paged_steps:,} steps had {widest:,} tokens; {full:,} had {planned:,}"
        if widest > planned:
            return Finding(self.name, str(widest), proof)
        if not full:
            return Finding(self.name, str(planned), f"{proof}: no step was filled", outcome="not_applicable")
        return Finding(self.name, str(planned), proof)


AXIS = BatchTokens()
