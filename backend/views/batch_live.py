"""What a browser gets of a run of many requests: the columns past its cursor, and everything else in words when it
changed. Names on the wire are the keys that the page's JavaScript reads."""

from collections.abc import Sequence
from typing import cast

import msgspec

from tokendyno.backend.messages import PREFILL, PageGroup, WaitReason
from tokendyno.backend.optimizations.base import divided
from tokendyno.backend.plan import ShapesKind
from tokendyno.backend.predict.lengths import cache_places
from tokendyno.backend.runs.arm_series import ArmSeries
from tokendyno.backend.runs.batch_series import BatchColumns
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.traffic import Traffic, TrafficRequest
from tokendyno.backend.views.card import card_of
from tokendyno.backend.views.comparison import pair_of
from tokendyno.backend.views.live import (
    ArmOnPage,
    Heads,
    Pulled,
    RunOnPage,
    arm_fields,
    pull_fields,
    pulled,
    run_fields,
)
from tokendyno.backend.views.tiles import WAIT_TEXTS, joined
from tokendyno.backend.views.verdict import compared, differing_at, same_sentence, why_sentence

MOST_BUCKETS = 16
"""Lengths that are shown, the shortest first: unpadded prompts have one each."""


class Bucket(msgspec.Struct, frozen=True):
    """A length that batches were padded to.

    slots     of the static cache, whose length a compiled step is for
    batches   seconds since the run began at which each batch of it began and ended
    compiled  the same of each time that something was compiled for it during the run
    said      in words: how often it was used, and when it was compiled
    """

    slots: int
    batches: list[tuple[float, float]]
    compiled: list[tuple[float, float]]
    said: str


class Requested(msgspec.Struct, frozen=True):
    """What the requests ask for, in columns; `prompt_tokens` is estimated where a text was given."""

    arrival_s: list[float]
    prompt_tokens: list[int]
    max_new_tokens: list[int]


class BatchArmHead(ArmOnPage, frozen=True, kw_only=True):
    """An arm that serves many requests.

    pages    groups of its paged KV cache, empty without one; `cache_bytes`: what they share
    buckets  lengths of its compiled batches, once it has ended
    """

    kind: str
    pages: list[PageGroup]
    cache_bytes: int
    buckets: list[Bucket] = []


class BatchHead(RunOnPage, frozen=True, kw_only=True):
    """A run of many requests.

    asked    None for a viewer that has it already
    same     how many requests got the same tokens, in a sentence; `differ`: where the others begin to differ
    """

    traffic: str
    slots: int
    why: str
    same: str
    compared: int
    differ: dict[int, int]
    waits: dict[WaitReason, str]
    asked: Requested | None
    arms: list[BatchArmHead]


class BatchDelta(Pulled, frozen=True, kw_only=True, rename={"columns": "lanes"}):
    """The answer to one pull."""

    head: BatchHead | None
    columns: list[BatchColumns]


def batch_delta(
    run: Run,
    version: int,
    cursors: Sequence[Sequence[int]],
    now_s: float,
    queue: str = "",
    heads: Heads[BatchHead] | None = None,
) -> BatchDelta:
    """What lies past a viewer's version (-1: none) and `cursors`: (steps, waits, moves of pages, ends) of each arm."""
    past, head = pulled(run, version, now_s, heads, lambda cached: run.past_batch(version, cursors, cached), batch_head)
    if head is not None and version >= 0:
        head = msgspec.structs.replace(head, asked=None)
    return BatchDelta(**pull_fields(run, past, queue), head=head, columns=past.columns)


def batch_head(run: Snapshot, now_s: float) -> BatchHead:
    """A run at one moment. `now_s`: seconds since it was created."""
    traffic = run.request.traffic
    assert traffic is not None
    arms, pair = [_arm(run, name, traffic) for name in run.arms], pair_of(run)
    return BatchHead(
        **run_fields(run, now_s, arms, pair, card_of(run, pair=pair)),
        max_new_tokens=sum(one.max_new_tokens for one in traffic.requests),
        traffic=traffic.label,
        slots=_slots(run, traffic),
        why=why_sentence(run) if run.ended else "",
        same=same_sentence(run),
        compared=compared(run),
        differ=differing_at(run),
        waits=WAIT_TEXTS,
        asked=_requested(traffic),
        arms=arms,
    )


def _slots(run: Snapshot, traffic: Traffic) -> int:
    """Requests that may be in work at once, of the arm that may have most."""
    started = [arm.started.batch_size for arm in run.arms.values() if arm.started is not None]
    return max(started, default=min(traffic.concurrent, len(traffic.requests)))


def _requested(traffic: Traffic) -> Requested:
    found = traffic.requests
    return Requested([r.arrival_s for r in found], [r.tokens for r in found], [r.max_new_tokens for r in found])


def _arm(run: Snapshot, name: str, traffic: Traffic) -> BatchArmHead:
    arm, choices = run.arms[name], run.planned(name).planned
    pages = arm.batch.pages
    compiled = arm.finished is not None and divided(choices.get("compile", "off"))[0] not in ("off", "module")
    shapes = cast(ShapesKind, choices.get("shapes", "exact"))
    return BatchArmHead(
        **arm_fields(run, name),
        kind=choices.get("batching", "off"),
        pages=pages.groups if pages else [],
        cache_bytes=pages.cache_bytes if pages else 0,
        buckets=buckets(arm, shapes, traffic.requests) if compiled else [],
    )


# --- one compile for each length --------------------------------------------------------------------


def buckets(arm: ArmSeries, shapes: ShapesKind, requests: Sequence[TrafficRequest]) -> list[Bucket]:
    """The lengths of a compiled arm's static batches so far. `requests`: as they were asked for."""
    series, found = arm.batch, dict[int, list[tuple[int, int]]]()  # slots -> first step of each batch and the one after
    ends = series.part_ends
    parts = [range(ends[i - 1] if i else 0, ends[i]) for i in range(len(ends))]
    first = [i for i, part in enumerate(parts) if any(series.kind[one] == PREFILL for one in part)]
    for begin, end in zip(first, [*first[1:], len(parts)], strict=True):
        rows = {series.request[one] for one in parts[begin] if series.kind[one] == PREFILL}
        longest = max(series.row(one).prompt_tokens for one in rows)
        slots = cache_places(shapes, longest, max(requests[one].max_new_tokens for one in rows))
        found.setdefault(slots, []).append((begin, end))
    shown = [_bucket(arm, slots, found[slots], slots == next(iter(found))) for slots in sorted(found)[:MOST_BUCKETS]]
    if len(found) > MOST_BUCKETS:
        more = f"{shown[-1].said}; {len(found) - MOST_BUCKETS} longer ones are not shown"
        shown[-1] = msgspec.structs.replace(shown[-1], said=more)
    return shown


def _bucket(arm: ArmSeries, slots: int, batches: Sequence[tuple[int, int]], warm: bool) -> Bucket:
    """`warm`: its first batch is the run's, in whose shapes was warmed up."""
    inside = [one for one in arm.annotations if any(begin <= one.token < end for begin, end in batches)]
    marks = [one for one in inside if one.kind in ("compile", "recompile")]
    refused = any(one.kind == "graph_skip" and one.text.startswith("not compiled") for one in inside)
    steps = sum(end - begin - 1 for begin, end in batches)
    words = ["compiled in the warm-up"] * warm
    if marks:
        took = joined(sum(one.seconds for one in marks))
        words.append(f"compiled{' again' * warm} {joined(marks[0].t_s)} into the run, in {took}")
    said = f"{len(batches)} batch{'es' * (len(batches) != 1)}, {steps:,} steps after the prompt; "
    said += ", ".join(words) or "nothing compiled for it in the run"
    if refused:
        said += "; then torch gave up compiling again, and it ran uncompiled"
    return Bucket(
        slots,
        [(arm.batch.begin_s[begin], arm.batch.end_s[end - 1]) for begin, end in batches],
        [(one.t_s, one.t_s + one.seconds) for one in marks],
        said,
    )
