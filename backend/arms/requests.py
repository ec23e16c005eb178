"""Checks an arm against many requests: their lengths, and the pages of continuous batching."""

from dataclasses import replace

from msgspec.structs import replace as changed

from tokendyno.backend.config import Workload
from tokendyno.backend.evidence import Verdict
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.plan import Plan
from tokendyno.backend.predict.memory import MemoryEstimate, peak_bytes
from tokendyno.backend.predict.pages import cache_bytes, pages_of
from tokendyno.backend.predict.setup import setup_of
from tokendyno.backend.predict.shape import Shape
from tokendyno.backend.predict.weights import itemsize
from tokendyno.backend.traffic import Traffic

_REQUESTS = "backend/arms/requests.py"


def of_arm(work: Workload, traffic: Traffic | None, plan: Plan) -> tuple[Workload, Traffic | None]:
    """The workload and the requests as one arm gets them: its plan may have a batch size of its own."""
    rows = plan.generate.batch.rows
    if traffic is None or not rows:
        return work, traffic
    return replace(work, batch_size=min(rows, len(traffic.requests))), changed(traffic, concurrent=rows)


def with_pages(
    memory: MemoryEstimate, plan: Plan, facts: ModelFacts, machine: Machine, traffic: Traffic
) -> MemoryEstimate:
    """The memory of continuous batching: pages, one row of tokens a step, and without flash attention a mask."""
    batch, setup = plan.generate.batch, setup_of(plan, machine)
    pages = pages_of(traffic, batch.page_tokens)
    kv = cache_bytes(facts, pages, batch.page_tokens, itemsize(facts, plan.load.dtype))
    step = peak_bytes(Shape(facts, setup, batch.step_tokens, 1, 1))
    mask = _mask_bytes(plan, facts) * (pages * batch.page_tokens + batch.step_tokens)
    return replace(memory, kv=kv, workspace=step.workspace + mask, kv_elsewhere=0)


def _mask_bytes(plan: Plan, facts: ModelFacts) -> int:
    """Bytes of the masks for each token in the cache."""
    if "flash" in (plan.load.attention or ""):
        return 0
    batch = plan.generate.batch
    sets = 2 if batch.asynchronous else 1
    return sets * len(facts.cache_layers) * batch.step_tokens * itemsize(facts, plan.load.dtype)


def of_traffic(plan: Plan, facts: ModelFacts, traffic: Traffic, memory: MemoryEstimate, room: int) -> list[Verdict]:
    """What speaks against these requests, before anything runs."""
    if facts.kind == "encoder":
        reason = f"{facts.no_tokens}: it generates no tokens, so requests cannot be batched. Use a decoder."
        return [Verdict("blocked", "model", reason, {}, _REQUESTS)]
    if plan.load.parallel.ranks > 1:
        reason = "Many requests are served by one process: with several ranks, only a single prompt is run so far."
        return [Verdict("blocked", "parallel", reason, {"parallel": "off"}, "backend/worker/runners/batch.py")]
    for number, request in enumerate(traffic.requests, 1):
        if request.tokens + request.max_new_tokens > facts.max_positions:
            reason = (
                f"Request {number} has {request.tokens:,} prompt tokens and {request.max_new_tokens:,} new ones, but "
                f"{facts.label} has {facts.max_positions:,} positions. Shorten its prompt or its output."
            )
            return [Verdict("blocked", "model", reason, {}, _REQUESTS)]
    if not plan.generate.batch.continuous:
        return []
    return _of_pages(plan, facts, traffic, memory, room)


def _of_pages(plan: Plan, facts: ModelFacts, traffic: Traffic, memory: MemoryEstimate, room: int) -> list[Verdict]:
    """A request that needs more pages than there are ends transformers' manager; more pages than memory fail later."""
    size = plan.generate.batch.page_tokens
    pages = pages_of(traffic, size)
    largest = traffic.largest()[0]
    needed = -(-(largest.tokens + largest.max_new_tokens) // size)
    if needed > pages:
        reason = (
            f"The longest request needs {needed:,} pages of {size} tokens, but there are only {pages:,}: it could "
            f"never be served. Use at least {needed:,} pages (--pages), or shorter requests."
        )
        return [
            Verdict("blocked", "pages", reason, {}, "transformers 5.22: ContinuousBatchProcessor.prepare_next_batch")
        ]
    if memory.total <= room:
        return []
    page_bytes = cache_bytes(facts, pages, size, itemsize(facts, plan.load.dtype)) / pages
    page_bytes += size * _mask_bytes(plan, facts)
    fixed = memory.total - pages * page_bytes
    most = int((room - fixed) / page_bytes)  # below 0 where nothing fits
    advice = "Use a smaller model, or close other programs."
    if most >= needed:
        advice = f"At most about {most:,} pages fit: set --pages {most}."
    gib = 1 << 30
    reason = (
        f"{pages:,} pages of {size} tokens take {memory.kv / gib:.1f} GiB, and with what a step reads of them "
        f"{facts.label} needs about {memory.total / gib:.1f} GiB, but only {room / gib:.1f} GiB are free. {advice}"
    )
    return [Verdict("blocked", "pages", reason, {}, "backend/predict/pages.py")]
