"""What a browser gets of a run of many requests: the columns past its cursor, and everything else in words when it
changed. Names on the wire are the keys that the page's JavaScript reads."""

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from tokendyno.backend.evidence import Verdict
from tokendyno.backend.messages import PageGroup, WaitReason
from tokendyno.backend.optimizations import titles_text
from tokendyno.backend.optimizations.base import divided
from tokendyno.backend.plan import ShapesKind
from tokendyno.backend.runs.batch_series import BatchColumns
from tokendyno.backend.runs.records import Status
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.traffic import Traffic
from tokendyno.backend.views.batch_tiles import WAIT_TEXTS, batch_details, batch_differences, batch_tiles
from tokendyno.backend.views.batch_verdict import batch_verdict, compared, differing_at, same_sentence, why_sentence
from tokendyno.backend.views.buckets import Bucket, buckets
from tokendyno.backend.views.card import Card, card_of
from tokendyno.backend.views.differences import Difference
from tokendyno.backend.views.generated_code import code_words
from tokendyno.backend.views.heading import heading
from tokendyno.backend.views.heads import Heads
from tokendyno.backend.views.ledger import LedgerDigest, LedgerRow, ledger_digest, ledger_rows
from tokendyno.backend.views.live import PhaseStep, pair_underway, phase_step
from tokendyno.backend.views.phase_bar import PhaseBar, phase_bar
from tokendyno.backend.views.sentences import interference_of
from tokendyno.backend.views.tile import Tile
from tokendyno.backend.views.verdict import VerdictText, unasked_sentence


class Asked(msgspec.Struct, frozen=True):
    """What the requests ask for, in columns; `prompt_tokens` is estimated where a text was given."""

    arrival_s: list[float]
    prompt_tokens: list[int]
    max_new_tokens: list[int]


class BatchArmHead(msgspec.Struct, frozen=True, rename={"interference": "spoilers"}):
    """Everything about an arm but its columns.

    pages   groups of its paged KV cache, empty without one; `cache_bytes`: what they share
    code    how much generated code of its graphs was kept, in words
    buckets  lengths of its compiled batches, once it has ended
    """

    name: str
    label: str
    kind: str
    state: str
    phases: list[PhaseStep]
    verdicts: list[Verdict]
    tiles: list[Tile]
    details: list[Tile]
    ledger: list[LedgerRow]
    notes: list[str]
    interference: list[str]
    pages: list[PageGroup]
    cache_bytes: int
    code: str = ""
    buckets: list[Bucket] = []


class BatchHead(msgspec.Struct, frozen=True):
    """Everything about a run but its columns.

    quiet         the browser shares the CPU with the measurement and should poll less often
    asked         None for a viewer that has it already
    same          how many requests got the same tokens, in a sentence; `differ`: where the others begin to differ
    """

    title: str
    note: str
    traffic: str
    created: float
    now_s: float
    message: str
    quiet: bool
    unit: str
    max_new_tokens: int
    slots: int
    verdict: VerdictText
    why: str
    same: str
    compared: int
    differ: dict[int, int]
    differences: Mapping[str, Difference]
    digest: LedgerDigest | None
    waits: dict[WaitReason, str]
    asked: Asked | None
    arms: list[BatchArmHead]
    card: Card | None = None
    heading: str = ""
    bar: PhaseBar | None = None


class BatchDelta(msgspec.Struct, frozen=True, rename={"columns": "lanes"}):
    """The answer to one pull; as `tokendyno.backend.views.live.Delta`."""

    run: str
    status: Status
    ended: bool
    version: int
    head: BatchHead | None
    columns: list[BatchColumns]
    queue: str = ""
    trouble: str = ""
    every_ms: int = 0


def batch_delta(
    run: Run,
    version: int,
    cursors: Sequence[Sequence[int]],
    now_s: float,
    queue: str = "",
    heads: Heads[BatchHead] | None = None,
) -> BatchDelta:
    """What lies past a viewer's version (-1: none) and `cursors`: (steps, waits, moves of pages, ends) of each arm."""
    kept = heads.get(run) if heads else None
    past = run.past_batch(version, cursors, kept.version if kept else None)
    head = None
    if past.snapshot is not None:
        head = batch_head(past.snapshot, now_s)
        if heads:
            heads.keep(run, past.version, head)
    elif kept and past.version != version:
        head = msgspec.structs.replace(kept.head, now_s=now_s)
    if head is not None and version >= 0:
        head = msgspec.structs.replace(head, asked=None)
    return BatchDelta(run.id, past.status, past.ended, past.version, head, past.columns, queue)


def batch_head(run: Snapshot, now_s: float) -> BatchHead:
    """A run at one moment. `now_s`: seconds since it was created."""
    traffic, created = run.request.traffic, run.created
    assert traffic is not None
    arms = [_arm(run, name, traffic) for name in run.arms]
    verdict = batch_verdict(run) if run.ended else VerdictText(unasked=unasked_sentence(run))
    over = all(arm.completed(0) for arm in run.arms.values()) and len(arms) == 2
    summaries = list(run.batch_summaries.values()) if over else []
    return BatchHead(
        title=created.model_label,
        note=created.model_note,
        traffic=traffic.label,
        created=created.created,
        now_s=now_s,
        message=pair_underway(run) or run.message,
        quiet=created.device == "cpu",
        unit=run.unit,
        max_new_tokens=sum(one.max_new_tokens for one in traffic.requests),
        slots=_slots(run, traffic),
        verdict=verdict,
        why=why_sentence(run) if run.ended else "",
        same=same_sentence(run),
        compared=compared(run),
        differ=differing_at(run),
        differences=batch_differences(summaries[0], summaries[1], run.comparison()) if summaries else {},
        digest=ledger_digest({arm.name: arm.ledger for arm in arms}),
        waits=WAIT_TEXTS,
        asked=_asked(traffic),
        arms=arms,
        card=card_of(run),
        heading=heading(created.model_label, run.status, verdict.sentence) if run.ended else "",
        bar=phase_bar(run, now_s, None),
    )


def _slots(run: Snapshot, traffic: Traffic) -> int:
    """Requests that may be in work at once, of the arm that may have most."""
    started = [arm.started.batch_size for arm in run.arms.values() if arm.started is not None]
    return max(started, default=min(traffic.concurrent, len(traffic.requests)))


def _asked(traffic: Traffic) -> Asked:
    found = traffic.requests
    return Asked([r.arrival_s for r in found], [r.tokens for r in found], [r.max_new_tokens for r in found])


def _arm(run: Snapshot, name: str, traffic: Traffic) -> BatchArmHead:
    arm, planned = run.arms[name], run.planned(name)
    asked = run.asked(name).choices
    found, pages = run.batch_summaries[name], arm.batch.pages
    peak_bytes = arm.finished.peak_memory_bytes if arm.finished else None
    choices = planned.planned
    compiled = arm.finished is not None and divided(choices.get("compile", "off"))[0] not in ("off", "module")
    shapes = cast(ShapesKind, choices.get("shapes", "exact"))
    return BatchArmHead(
        name=name,
        label=titles_text(asked),
        kind=planned.planned.get("batching", "off"),
        state=arm.state,
        phases=[phase_step(phase, arm.expected_s) for phase in arm.phases.values()],
        verdicts=planned.verdicts,
        tiles=batch_tiles(found, traffic.limits),
        details=batch_details(found, peak_bytes, run.memory_label) if arm.finishes else [],
        ledger=ledger_rows(run.ledger(name)),
        notes=arm.started.notes if arm.started else [],
        interference=interference_of(run, name, run.summary(name)),
        pages=pages.groups if pages else [],
        cache_bytes=pages.cache_bytes if pages else 0,
        code=code_words(arm.finished),
        buckets=buckets(arm, shapes, traffic.requests) if compiled else [],
    )
