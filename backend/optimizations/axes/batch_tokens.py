"""How many tokens one step of continuous batching may process."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.base import Choice, Optimization
from tokendyno.backend.optimizations.conditions import batches_continuously
from tokendyno.backend.optimizations.proof import Observation
from tokendyno.backend.optimizations.subject import Subject, blocked
from tokendyno.backend.plan import Plan

_PAGED = "transformers 5.22: generation/continuous_batching"
_RULES = (
    blocked(
        lambda s: not batches_continuously(s),
        "Only continuous batching has a token budget for each step.",
        _PAGED,
        (("batching", "continuous"),),
    ),
)


class BatchTokens(Optimization):
    """Told by the widest steps: filled up to the budget, and none beyond it."""

    name = "batch_tokens"
    title = "Tokens a step"
    summary = "Tokens that one step may process, those of prompts included: long prompts are cut into several steps."
    default = "512"
    order = 66
    decoders_only = True
    many_requests = True
    choices = (
        Choice("512", "512", "Prompts of more tokens are cut into steps of 512."),
        Choice("128", "128", "Prompts of more tokens are cut into steps of 128.", _RULES),
        Choice("256", "256", "Prompts of more tokens are cut into steps of 256.", _RULES),
        Choice("1024", "1,024", "Prompts of more tokens are cut into steps of 1,024.", _RULES),
        Choice("2048", "2,048", "Prompts of more tokens are cut into steps of 2,048.", _RULES),
        Choice("4096", "4,096", "Prompts of more tokens are cut into steps of 4,096.", _RULES),
        Choice("8192", "8,192", "Prompts of more tokens are cut into steps of 8,192.", _RULES),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        return plan.batched(step_tokens=int(name))

    def find(self, observation: Observation) -> Finding:
        """Where no step was filled, a larger budget would have changed nothing."""
        counts = observation.counts
        if not counts.paged_steps:
            return Finding(self.name, self.default, "no step of continuous batching", outcome="not_applicable")
        widest, full = int(counts.widest_step_tokens or 0), int(counts.full_steps or 0)
        planned = observation.plan.generate.batch.step_tokens
        proof = f"the widest of {int(counts.paged_steps):,} steps had {widest:,} tokens; {full:,} had {planned:,}"
        if widest > planned:
            return Finding(self.name, str(widest), proof)
        if not full:
            return Finding(self.name, str(planned), f"{proof}: no step was filled", outcome="not_applicable")
        return Finding(self.name, str(planned), proof)


AXIS = BatchTokens()
