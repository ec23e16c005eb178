"""A run of many requests as one document for programs (kind "batch", schema 3)."""

import msgspec

from tokendyno.backend.config import Workload
from tokendyno.backend.messages import IDLE, PageGroup, PhaseName, WaitReason
from tokendyno.backend.runs.arm_series import ArmSeries
from tokendyno.backend.runs.batch_series import BatchSeries, RequestRow
from tokendyno.backend.runs.batch_summary import BatchSummary
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.summary import Comparison
from tokendyno.backend.traffic import Limits, TrafficRequest
from tokendyno.backend.views.card import Card, card_of
from tokendyno.backend.views.schema import (
    Annotated,
    ArmHead,
    Load,
    MemorySamples,
    Part,
    RunHead,
    Unasked,
    arm_head,
    arm_measured,
    head,
)


class RequestDocument(Part, frozen=True):
    """One request. Times are seconds since the run began; null where it did not get so far.

    waited_for  why it waited, each reason once; empty where it did not
    ended       length, eos, cancelled, or "" while it has not ended
    """

    arrival_s: float
    start_s: float | None
    first_token_s: float | None
    end_s: float | None
    prompt_tokens: int
    tokens: int
    token_ids: list[int]
    token_s: list[float]
    waited_for: list[WaitReason]
    ended: str
    text: str


class StepsDocument(Part, frozen=True):
    """The steps, in columns. `active`: requests in each; `tokens`: positions that they processed, without padding."""

    begin_s: list[float]
    end_s: list[float]
    active: list[int]
    tokens: list[int]
    padding: list[int]
    idle: list[int]
    waiting: list[int]


class PagesDocument(Part, frozen=True):
    """The paged KV cache. `held`: pages of each group that requests hold, by step; `moves`: each page that changed
    hands before a step, `request` -1 where it was given back."""

    groups: list[PageGroup]
    cache_bytes: int
    predicted_bytes: int | None
    free_bytes: list[int]
    held: list[list[int]]
    moves: dict[str, list[int]]


class BatchArm(ArmHead, frozen=True):
    """One arm: requests, steps, pages and `summary` of the first run; `useful_tokens_s` over all `runs`."""

    notes: list[str]
    useful_tokens_s: float | None
    runs: list[float]
    summary: BatchSummary
    requests: list[RequestDocument]
    steps: StepsDocument
    pages: PagesDocument | None
    memory_label: str
    memory_samples: MemorySamples
    memory_predicted_bytes: dict[str, int]
    weight_bytes: int | None
    parameters: int | None
    load: Load
    phases_s: dict[PhaseName, float]
    wall_s: float | None
    clock: str | None
    extra: dict[str, float]
    interference: list[str]
    annotations: list[Annotated]


class TrafficDocument(Part, frozen=True):
    """What was asked of both arms."""

    label: str
    concurrent: int
    pages: int
    limits: Limits
    requests: list[TrafficRequest]


class BatchDocument(RunHead, frozen=True, tag="batch"):
    """A run of many requests. `same_tokens`: how many got the same tokens from both arms, null for one arm.
    `comparison`, `verdict`: of useful tokens/s, once there is a pair of runs."""

    workload: Workload
    traffic: TrafficDocument
    same_tokens: int | None
    arms: list[BatchArm]
    comparison: Comparison | msgspec.UnsetType = msgspec.UNSET
    verdict: Card | msgspec.UnsetType = msgspec.UNSET
    unasked: Unasked = msgspec.UNSET


def batch_document(run: Run) -> BatchDocument:
    """The document of a run as it is now."""
    now = run.snapshot()
    traffic = now.request.traffic
    assert traffic is not None
    return BatchDocument(
        **head(now),
        workload=now.request.workload,
        traffic=TrafficDocument(traffic.label, traffic.concurrent, traffic.pages, traffic.limits, traffic.requests),
        same_tokens=now.same_tokens(),
        arms=[_arm(now, name) for name in now.arms],
        comparison=now.comparison() or msgspec.UNSET,
        verdict=card_of(now) or msgspec.UNSET,
        unasked=now.unasked or msgspec.UNSET,
    )


def _arm(run: Snapshot, name: str) -> BatchArm:
    arm, summary = run.arms[name], run.batch_summaries[name]
    batch = arm.batch
    assert run.request.traffic is not None
    return BatchArm(
        **arm_head(run, name),
        **arm_measured(run, name),
        useful_tokens_s=summary.useful_tokens_s,
        runs=list(run.useful_rates(name).values()),
        summary=summary,
        requests=[
            _request(batch.requests.get(number) or RequestRow(), asked)
            for number, asked in enumerate(run.request.traffic.requests)
        ],
        steps=_steps(batch),
        pages=_pages(arm),
    )


def _request(row: RequestRow, asked: TrafficRequest) -> RequestDocument:
    return RequestDocument(
        asked.arrival_s,
        row.start_s,
        row.first_token_s,
        row.end_s,
        row.prompt_tokens or asked.tokens,
        len(row.ids),
        row.ids,
        row.token_s,
        row.waited_for,
        row.reason,
        row.text,
    )


def _steps(batch: BatchSeries) -> StepsDocument:
    parts = list(batch.parts_of_steps())
    return StepsDocument(
        begin_s=batch.begin_s,
        end_s=batch.end_s,
        active=[sum(kind != IDLE for _, kind, _ in step) for step in parts],
        tokens=[sum(tokens for _, kind, tokens in step if kind != IDLE) for step in parts],
        padding=batch.padding,
        idle=[sum(kind == IDLE for _, kind, _ in step) for step in parts],
        waiting=batch.waiting,
    )


def _pages(arm: ArmSeries) -> PagesDocument | None:
    batch = arm.batch
    if batch.pages is None:
        return None
    moves = {
        "step": batch.move_step,
        "group": batch.move_group,
        "page": batch.move_page,
        "request": batch.move_request,
    }
    held = batch.held_pages()
    predicted = arm.predicted_memory.get("kv")
    return PagesDocument(batch.pages.groups, batch.pages.cache_bytes, predicted, batch.free_bytes, held, moves)
