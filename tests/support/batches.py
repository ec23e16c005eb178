"""Runs of many requests made of records, without a worker."""

import time
from collections.abc import Sequence

from tokendyno.backend.config import ArmRequest, Request, workload_of
from tokendyno.backend.evidence import Finding
from tokendyno.backend.messages import (
    DECODE,
    IDLE,
    PREFILL,
    BatchEvent,
    Event,
    Finished,
    PageGroup,
    PageMoves,
    PagesAllocated,
    Progress,
    RequestEnds,
    Started,
    Steps,
    Waits,
)
from tokendyno.backend.runs.records import ArmEvent, ArmPlanned, Created, Record
from tokendyno.backend.traffic import Limits, Traffic, TrafficRequest

NONE = -1
STEP_S = 0.5

TRAFFIC = Traffic(
    [TrafficRequest(0.0, 3, 6), TrafficRequest(0.0, 1, 2), TrafficRequest(0.5, 2, 4)],
    concurrent=2,
    limits=Limits(ttft_s=1.0),
    label="3 requests, made by hand",
)
"""Two at once; the third arrives while both slots are taken."""


def steps(rows: Sequence[tuple[int, Sequence[tuple[int, int, int, int]]]], waiting: Sequence[int]) -> Steps:
    """Steps of `STEP_S` each: (padding, parts), a part being (request, kind, tokens, token made)."""
    parts = [part for _, found in rows for part in found]
    return Steps(
        first=0,
        begin_s=[STEP_S * i for i in range(len(rows))],
        end_s=[STEP_S * (i + 1) for i in range(len(rows))],
        parts=[len(found) for _, found in rows],
        padding=[padding for padding, _ in rows],
        waiting=list(waiting),
        request=[part[0] for part in parts],
        kind=[part[1] for part in parts],
        tokens=[part[2] for part in parts],
        made=[part[3] for part in parts],
    )


def static_events(last: int = 31) -> list[BatchEvent]:
    """Requests 0 and 1 are one batch, 2 is the next. `last`: the last token of request 2."""
    return [
        Waits([0.5], [2], ["batch"]),
        steps(
            [
                (4, [(0, PREFILL, 6, 11), (1, PREFILL, 2, 21)]),
                (0, [(0, DECODE, 1, 12), (1, IDLE, 1, NONE)]),
                (0, [(0, DECODE, 1, 13), (1, IDLE, 1, NONE)]),
                (0, [(2, PREFILL, 4, 30)]),
                (0, [(2, DECODE, 1, last)]),
            ],
            [0, 1, 1, 0, 0],
        ),
        RequestEnds([1, 0, 2], [0.5, 1.5, 2.5], ["length"] * 3, ["one", "zero", "two"]),
    ]


def paged_events(last: int = 31) -> list[BatchEvent]:
    """Request 1 leaves after its first step and 2 enters in two chunks; pages of 4 tokens in one group of 6."""
    return [
        PagesAllocated([PageGroup("full_attention", 2, 4, 100, 6)], 600, 0),
        Waits([0.5], [2], ["requests"]),
        PageMoves([0, 0, 0, 1, 1, 3], [0] * 6, [0, 1, 2, 2, 3, 0], [0, 0, 1, NONE, 2, NONE]),
        steps(
            [
                (0, [(0, PREFILL, 6, 11), (1, PREFILL, 2, 21)]),
                (0, [(0, DECODE, 1, 12), (2, PREFILL, 3, NONE)]),
                (0, [(0, DECODE, 1, 13), (2, PREFILL, 1, 30)]),
                (0, [(2, DECODE, 1, last)]),
            ],
            [0, 0, 0, 0],
        ),
        RequestEnds([1, 0, 2], [0.5, 1.5, 2.0], ["length"] * 3, ["one", "zero", "two"]),
    ]


def batch_created(run_id: str = "batch1", traffic: Traffic = TRAFFIC, at_s: float | None = None) -> Created:
    """The first record: A static, B continuous."""
    asked = [ArmRequest("A", {"batching": "static"}), ArmRequest("B", {"batching": "continuous"})]
    planned = [ArmPlanned(arm.name, arm.choices, arm.choices | {"attention": "sdpa"}, []) for arm in asked]
    request = Request("pocket", asked, workload_of(traffic, ignore_eos=True), traffic)
    return Created(run_id, time.time() if at_s is None else at_s, request, planned, "Pocket", "", {}, "cpu")


def batch_arm(name: str, events: Sequence[BatchEvent]) -> list[Record]:
    """One arm's records from its beginning to its end."""
    kind = "static" if name == "A" else "continuous"
    proof = Finding("batching", kind, "made by hand")
    served = [event for event in events if isinstance(event, Steps)]
    useful = sum(token >= 0 for event in served for token in event.made)
    wall_s = served[-1].end_s[-1] if served else 1.0
    found: list[Event] = [
        Progress("run", "begin", 0.0),
        Started(6, 2, 3, []),
        *events,
        Progress("run", "end", wall_s),
        Finished("length", "", 0.5, wall_s, 2**29, "RSS", "clock", [proof], {"useful_tokens": float(useful)}),
    ]
    return [ArmEvent(name, 0, 0.1 * i, event) for i, event in enumerate(found)]
