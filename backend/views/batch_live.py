"""What a browser gets of a run of many requests: the columns past its cursor, and everything else in words when it
changed. Names on the wire are the keys that the page's JavaScript reads."""

from collections.abc import Sequence
from typing import cast

import msgspec

from tokendyno.backend.messages import PageGroup, WaitReason
from tokendyno.backend.optimizations.base import divided
from tokendyno.backend.plan import ShapesKind
from tokendyno.backend.runs.batch_series import BatchColumns
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.traffic import Traffic
from tokendyno.backend.views.batch_tiles import WAIT_TEXTS, batch_details, batch_differences, batch_tiles
from tokendyno.backend.views.batch_verdict import batch_verdict, compared, differing_at, same_sentence, why_sentence
from tokendyno.backend.views.buckets import Bucket, buckets
from tokendyno.backend.views.card import card_of
from tokendyno.backend.views.heads import Heads, pulled
from tokendyno.backend.views.ledger import ledger_rows
from tokendyno.backend.views.live import ArmOnPage, Pulled, RunOnPage, arm_fields, pull_fields, run_fields


class Asked(msgspec.Struct, frozen=True):
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
    asked: Asked | None
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
    past, head = pulled(run, version, now_s, heads, lambda kept: run.past_batch(version, cursors, kept), batch_head)
    if head is not None and version >= 0:
        head = msgspec.structs.replace(head, asked=None)
    return BatchDelta(**pull_fields(run, past, queue), head=head, columns=past.columns)


def batch_head(run: Snapshot, now_s: float) -> BatchHead:
    """A run at one moment. `now_s`: seconds since it was created."""
    traffic = run.request.traffic
    assert traffic is not None
    arms = [_arm(run, name, traffic) for name in run.arms]
    over = all(arm.completed(0) for arm in run.arms.values()) and len(arms) == 2
    summaries = list(run.batch_summaries.values()) if over else []
    return BatchHead(
        **run_fields(run, now_s, arms, batch_verdict(run) if run.ended else None, card_of(run)),
        max_new_tokens=sum(one.max_new_tokens for one in traffic.requests),
        differences=batch_differences(summaries[0], summaries[1], run.comparison()) if summaries else {},
        traffic=traffic.label,
        slots=_slots(run, traffic),
        why=why_sentence(run) if run.ended else "",
        same=same_sentence(run),
        compared=compared(run),
        differ=differing_at(run),
        waits=WAIT_TEXTS,
        asked=_asked(traffic),
        arms=arms,
    )


def _slots(run: Snapshot, traffic: Traffic) -> int:
    """Requests that may be in work at once, of the arm that may have most."""
    started = [arm.started.batch_size for arm in run.arms.values() if arm.started is not None]
    return max(started, default=min(traffic.concurrent, len(traffic.requests)))


def _asked(traffic: Traffic) -> Asked:
    found = traffic.requests
    return Asked([r.arrival_s for r in found], [r.tokens for r in found], [r.max_new_tokens for r in found])


def _arm(run: Snapshot, name: str, traffic: Traffic) -> BatchArmHead:
    arm, choices = run.arms[name], run.planned(name).planned
    figures, pages = run.batch_summaries[name], arm.batch.pages
    peak_bytes = arm.finished.peak_memory_bytes if arm.finished else None
    compiled = arm.finished is not None and divided(choices.get("compile", "off"))[0] not in ("off", "module")
    shapes = cast(ShapesKind, choices.get("shapes", "exact"))
    return BatchArmHead(
        **arm_fields(run, name),
        kind=choices.get("batching", "off"),
        tiles=batch_tiles(figures, traffic.limits),
        details=batch_details(figures, peak_bytes, run.memory_label) if arm.finishes else [],
        ledger=ledger_rows(run.ledger(name)),
        pages=pages.groups if pages else [],
        cache_bytes=pages.cache_bytes if pages else 0,
        buckets=buckets(arm, shapes, traffic.requests) if compiled else [],
    )
