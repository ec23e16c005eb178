"""How many tokens a page of the KV cache holds in continuous batching."""

from tokendyno.backend.optimizations.base import Choice, ManyRequests, Subject
from tokendyno.backend.optimizations.conditions import only_continuous
from tokendyno.backend.plan import Plan

_RULES = (only_continuous("pages"),)


class PageSize(ManyRequests):
    name = "page_size"
    title = "Page size"
    summary = "Tokens in a page of the KV cache: small pages waste less room at the end of a request."
    default = "256"
    in_pages = True
    order = 64
    aliases = {"": ("block_size",)}
    choices = (
        Choice("256", "256 tokens", "The page size of transformers; what FlashAttention 2 needs."),
        *(Choice(str(n), f"{n} tokens", f"Pages of {n} tokens.", _RULES) for n in (16, 32, 64, 128)),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        return plan.batched(page_tokens=int(name))


AXIS = PageSize()
