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
from tokendyno.backend.units import plural
from tokendyno.backend.views.card import card_of
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
from tokendyno.backend.views.verdict import compared, same_sentence, why_sentence

MOST_BUCKETS = 16
"""Lengths that are shown, the shortest first: unpadded prompts have one each."""


class Bucket(msgspec.Struct, frozen=True):
    """A length that batches were padded to. `slots`: of the static cache, whose length a compiled step is for."""

    slots: int
    batches: list[tuple[float, float]]
    compiled: list[tuple[float, float]]
    said: str


class Requested(msgspec.Struct, frozen=True):
    """What was requested, in columns; `prompt_tokens` is an estimate where a text was given."""

    arrival_s: list[float]
    prompt_tokens: list[int]
    max_new_tokens: list[int]


class BatchArmHead(ArmOnPage, frozen=True, kw_only=True):
    """An arm that serves many requests. `pages`: groups of its paged KV cache, empty without one; `cache_bytes`: what
    they share."""

    kind: str
    pages: list[PageGroup]
    cache_bytes: int
    buckets: list[Bucket] = []


class BatchHead(RunOnPage, frozen=True, kw_only=True):
    """A run of many requests. `asked`: None for a viewer that has it already. `same`: how many requests got the same
    tokens, in a sentence; `differ`: where the others begin to differ."""

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
    arms = [_arm(run, name, traffic) for name in run.arms]
    return BatchHead(
        **run_fields(run, now_s, arms, card_of(run)),
        max_new_tokens=sum(request.max_new_tokens for request in traffic.requests),
        traffic=traffic.label,
        slots=_slots(run, traffic),
        why=why_sentence(run) if run.ended else "",
        same=same_sentence(run),
        compared=compared(run),
        differ={request: token for request, token in (run.differing_requests or {}).items() if token is not None},
        waits=WAIT_TEXTS,
        asked=Requested(
            [request.arrival_s for request in traffic.requests],
            [request.tokens for request in traffic.requests],
            [request.max_new_tokens for request in traffic.requests],
        ),
        arms=arms,
    )


def _slots(run: Snapshot, traffic: Traffic) -> int:
    """Most requests that either arm may have in work at once."""
    batch_sizes = [arm.started.batch_size for arm in run.arms.values() if arm.started is not None]
    return max(batch_sizes, default=min(traffic.concurrent, len(traffic.requests)))


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
    """The lengths of a compiled arm's static batches so far. `requests`: those of the traffic."""
    batch, batches_of = arm.batch, dict[int, list[tuple[int, int]]]()  # slots -> (first step, step after) of each batch
    prefilled = [[request for request, kind, _ in step if kind == PREFILL] for step in batch.parts_of_steps()]
    first_steps = [i for i, rows in enumerate(prefilled) if rows]
    for begin, end in zip(first_steps, [*first_steps[1:], len(prefilled)], strict=True):
        rows = prefilled[begin]
        longest_prompt = max(batch.row(request).prompt_tokens for request in rows)
        slots = cache_places(shapes, longest_prompt, max(requests[request].max_new_tokens for request in rows))
        batches_of.setdefault(slots, []).append((begin, end))
    warm_slots = next(iter(batches_of), 0)  # the warm-up had the shapes of the first batch
    shown = [_bucket(arm, slots, batches_of[slots], slots == warm_slots) for slots in sorted(batches_of)[:MOST_BUCKETS]]
    if len(batches_of) > MOST_BUCKETS:
        said = f"{shown[-1].said}; {plural(len(batches_of) - MOST_BUCKETS, 'longer one')} not shown"
        shown[-1] = msgspec.structs.replace(shown[-1], said=said)
    return shown


def _bucket(arm: ArmSeries, slots: int, batches: Sequence[tuple[int, int]], warm: bool) -> Bucket:
    """`batches`: (first step, step after) of each; `warm`: it was compiled in the warm-up."""
    annotations = [mark for mark in arm.annotations if any(begin <= mark.token < end for begin, end in batches)]
    compiles = [mark for mark in annotations if mark.kind in ("compile", "recompile")]
    refused = any(mark.kind == "graph_skip" and mark.text.startswith("not compiled") for mark in annotations)
    steps = sum(end - begin - 1 for begin, end in batches)
    words = ["compiled in the warm-up"] * warm
    if compiles:
        took = joined(sum(mark.seconds for mark in compiles))
        words.append(f"compiled{' again' * warm} {joined(compiles[0].t_s)} into the run, in {took}")
    said = f"{plural(len(batches), 'batch')}, {plural(steps, 'step')} after the prompt; "
    said += ", ".join(words) or "nothing compiled for it in the run"
    if refused:
        said += "; then torch gave up compiling again, and it ran uncompiled"
    return Bucket(
        slots,
        [(arm.batch.begin_s[begin], arm.batch.end_s[end - 1]) for begin, end in batches],
        [(mark.t_s, mark.t_s + mark.seconds) for mark in compiles],
        said,
    )
