"""The figures of many requests of one arm: useful tokens a second, what requests waited, goodput, and wasted work."""

import math
import operator
from collections import Counter
from collections.abc import Sequence

import msgspec

from tokendyno.backend.messages import IDLE, WaitReason
from tokendyno.backend.runs.batch_series import BatchSeries, RequestRow
from tokendyno.backend.runs.statistics import median, percentile
from tokendyno.backend.runs.texts import equal_until
from tokendyno.backend.traffic import Limits, Traffic


class Spread(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds of requests: how many, the middle one, and percentiles where there are enough for them."""

    count: int
    median_s: float | None
    p90_s: float | None
    p99_s: float | None


class BatchSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Figures so far; None: not known yet. Useful tokens are those that requests asked for and got: no padding, and no
    rows whose request has ended.

    wall_s           from the beginning to the end of the latest step
    ttft             from a request's arrival to its first token, so waiting counts
    token            time per output token: from its first token to its last, over the tokens after the first
    good             requests within all limits; None without a limit
    slot_steps       rows or requests that the steps so far had room for; busy_steps: those that did something
    idle_steps       rows of static batches that held an ended request, or none
    padding_tokens   positions that held padding; positions: all that were processed
    held_peak_bytes  most of the paged KV cache that requests held at once; cache_bytes: all of it. None without pages
    """

    requests: int
    served: int
    tokens: int
    wall_s: float | None
    useful_tokens_s: float | None
    ttft: Spread
    token: Spread
    request: Spread
    good: int | None
    goodput_s: float | None
    steps: int
    step_mean_s: float | None
    slot_steps: int
    busy_steps: int
    idle_steps: int
    busy_share: float | None
    padding_tokens: int
    positions: int
    held_peak_bytes: int | None
    cache_bytes: int | None
    waited: dict[WaitReason, int]


def summarize_batch(batch: BatchSeries, traffic: Traffic, slots: int = 0) -> BatchSummary:
    """The figures of an arm. `slots`: requests that it may have in work at once; 0: as many as all arms."""
    arrival_s = {i: request.arrival_s for i, request in enumerate(traffic.requests)}
    rows = {i: row for i, row in batch.requests.items() if i in arrival_s}
    served = {i: row for i, row in rows.items() if _served(row)}
    tokens, steps = sum(len(row.ids) for row in rows.values()), len(batch.end_s)
    wall_s = max(batch.end_s) if steps else None
    good = (
        None
        if not any((traffic.limits.ttft_s, traffic.limits.token_s, traffic.limits.request_s))
        else sum(_within(traffic.limits, arrival_s[i], row) for i, row in served.items())
    )
    busy = len(batch.kind) - batch.kind.count(IDLE)
    slot_steps = steps * (slots or min(traffic.concurrent, len(arrival_s)))
    held_peak_bytes, cache_bytes = _page_bytes(batch)
    return BatchSummary(
        requests=len(arrival_s),
        served=len(served),
        tokens=tokens,
        wall_s=wall_s,
        useful_tokens_s=tokens / wall_s if wall_s else None,
        ttft=_spread([row.first_token_s - arrival_s[i] for i, row in rows.items() if row.first_token_s is not None]),
        token=_spread([seconds for row in served.values() if (seconds := token_s(row)) is not None]),
        request=_spread([row.end_s - arrival_s[i] for i, row in served.items() if row.end_s is not None]),
        good=good,
        goodput_s=good / wall_s if good is not None and wall_s else None,
        steps=steps,
        step_mean_s=math.fsum(map(operator.sub, batch.end_s, batch.begin_s)) / steps if steps else None,
        slot_steps=slot_steps,
        busy_steps=busy,
        idle_steps=batch.kind.count(IDLE),
        busy_share=busy / slot_steps if slot_steps else None,
        padding_tokens=sum(batch.padding),
        positions=sum(batch.padding) + sum(batch.tokens),
        held_peak_bytes=held_peak_bytes,
        cache_bytes=cache_bytes,
        waited=dict(Counter(reason for row in rows.values() for reason in row.waited_for)),
    )


def token_s(row: RequestRow) -> float | None:
    """Time per output token of a request: over the tokens after its first. None below two tokens."""
    if len(row.token_s) < 2:
        return None
    return (row.token_s[-1] - row.token_s[0]) / (len(row.token_s) - 1)


def differing(a: BatchSeries, b: BatchSeries) -> dict[int, int | None] | None:
    """By request that both arms served, the index of the first token in which they differ, or None where none does.
    None while there is no such request."""
    both = [i for i, row in a.requests.items() if _served(row) and i in b.requests and _served(b.requests[i])]
    return {i: equal_until(a.requests[i].ids, b.requests[i].ids) for i in sorted(both)} or None


def _served(row: RequestRow) -> bool:
    return row.end_s is not None and row.reason != "cancelled"


def _within(limits: Limits, arrival_s: float, row: RequestRow) -> bool:
    if row.first_token_s is None or row.end_s is None:
        return False
    taken = (
        (limits.ttft_s, row.first_token_s - arrival_s),
        (limits.token_s, token_s(row) or 0.0),
        (limits.request_s, row.end_s - arrival_s),
    )
    return all(not limit_s or took_s <= limit_s for limit_s, took_s in taken)


def _spread(seconds: Sequence[float]) -> Spread:
    return Spread(len(seconds), median(seconds), percentile(seconds, 0.90), percentile(seconds, 0.99))


def _page_bytes(batch: BatchSeries) -> tuple[int | None, int | None]:
    """Most bytes of the paged cache that requests held at once, and all of them. Groups of layers share these bytes."""
    if batch.pages is None:
        return None, None
    page_bytes = [group.page_bytes for group in batch.pages.groups]
    taken: set[tuple[int, int]] = set()
    held = peak = 0
    for i, step in enumerate(batch.move_step):
        if i and step != batch.move_step[i - 1]:
            peak = max(peak, held)
        group, page, request = batch.move_group[i], batch.move_page[i], batch.move_request[i]
        held += page_bytes[group] * ((request >= 0) - ((group, page) in taken))
        (taken.add if request >= 0 else taken.discard)((group, page))
    return max(peak, held), batch.pages.cache_bytes
