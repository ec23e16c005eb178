"""How many tokens one step of continuous batching may process."""

from tokendyno.backend.optimizations.base import Choice, ManyRequests, Subject
from tokendyno.backend.optimizations.conditions import only_continuous
from tokendyno.backend.plan import Plan

_RULES = (only_continuous("a token budget for each step"),)


class BatchTokens(ManyRequests):
    name = "batch_tokens"
    title = "Tokens a step"
    summary = "Tokens that one step may process, those of prompts included: long prompts are cut into several steps."
    default = "512"
    in_pages = True
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


AXIS = BatchTokens()
