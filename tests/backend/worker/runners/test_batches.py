"""Many requests on the embedded model: static and continuous batching give the same tokens, and say what they did."""

import gc
import weakref
from typing import Any
from unittest import mock

import msgspec
import pytest
from transformers.generation.continuous_batching.cache import PagedAttentionCache

from tests.support.local_worker import LocalWorker
from tests.support.worker import only, plan_of, traffic_job
from tokendyno.backend.evidence import Finding
from tokendyno.backend.messages import DECODE, IDLE, PREFILL, Finished, PageMoves, Steps, Waits
from tokendyno.backend.plan import BatchPlan
from tokendyno.backend.runs.batch_series import BatchSeries
from tokendyno.backend.traffic import Traffic, TrafficRequest
from tokendyno.backend.traffic.presets import drawn
from tokendyno.backend.traffic.requests import Draw
from tokendyno.backend.worker.runners.token_loops import Caches

REQUESTS, ROWS = 7, 3
TRAFFIC = drawn(Draw(REQUESTS, (5, 40), (3, 14)), 1, ROWS)
BATCHES = -(-REQUESTS // ROWS)


class Served:
    """One run: what it sent, folded."""

    def __init__(
        self, worker: LocalWorker, traffic: Traffic, prove: bool = True, ignore_eos: bool = True, **batch: Any
    ) -> None:
        plan, how = plan_of("pocket", dtype="float32"), BatchPlan(**{"page_tokens": 16} | batch)
        job = traffic_job(plan, traffic, how, ignore_eos=ignore_eos, prove=prove)
        self.finished: Finished = worker.run(job)
        self.events = list(worker.events)
        self.batch = BatchSeries()
        for event in self.events:
            if type(event).__name__ in ("Steps", "Waits", "PageMoves", "PagesAllocated", "RequestEnds"):
                self.batch.take(event)  # type: ignore[arg-type]

    @property
    def ids(self) -> list[list[int]]:
        return [self.batch.requests[i].ids for i in range(len(self.batch.requests))]

    def finding(self, axis: str) -> Finding:
        return next(finding for finding in self.finished.findings if finding.axis == axis)


@pytest.fixture(scope="module")
def worker() -> LocalWorker:
    return LocalWorker(plan_of("pocket", dtype="float32").load)


@pytest.fixture(scope="module")
def static(worker: LocalWorker) -> Served:
    return Served(worker, TRAFFIC, kind="static")


@pytest.fixture(scope="module")
def continuous(worker: LocalWorker) -> Served:
    return Served(worker, TRAFFIC, kind="continuous", step_tokens=32)


def test_each_request_gets_the_tokens_it_asked_for_and_the_same_ones(static: Served, continuous: Served) -> None:
    requested = [request.max_new_tokens for request in TRAFFIC.requests]
    assert [len(ids) for ids in static.ids] == [len(ids) for ids in continuous.ids] == requested
    assert static.ids == continuous.ids
    assert [row.text for row in map(static.batch.row, range(REQUESTS))] == [
        row.text for row in map(continuous.batch.row, range(REQUESTS))
    ]


def test_a_static_batch_lasts_as_long_as_its_longest_and_shows_padding_and_idle_rows(static: Served) -> None:
    batches = [TRAFFIC.requests[i : i + ROWS] for i in range(0, REQUESTS, ROWS)]
    longest = [max(request.max_new_tokens for request in batch) for batch in batches]
    assert len(static.batch.end_s) == sum(longest)
    idle = sum(most - request.max_new_tokens for batch, most in zip(batches, longest, strict=True) for request in batch)
    assert static.batch.kind.count(IDLE) == idle
    prompts = [[request.prompt_tokens for request in batch] for batch in batches]
    assert sum(static.batch.padding) == sum(max(sizes) * len(sizes) - sum(sizes) for sizes in prompts)
    assert (static.finished.counts.static.batches, static.finished.counts.static.rows_seen) == (BATCHES, REQUESTS)


def test_no_static_cache_outlives_the_next_batch(worker: LocalWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    build, caches, alive = Caches._build, weakref.WeakSet[Any](), list[int]()

    def counted(self: Caches, *args: Any) -> Any:
        gc.collect()
        alive.append(len(caches))  # that of the batch before may be one of them
        caches.add(cache := build(self, *args))
        return cache

    monkeypatch.setattr(Caches, "_build", counted)
    worker.run(traffic_job(plan_of("pocket", dtype="float32", cache="static"), TRAFFIC, BatchPlan(kind="static")))
    assert len(alive) == BATCHES
    assert max(alive) == 1


def test_prompts_of_one_token_are_prompts(worker: LocalWorker) -> None:
    requests = [TrafficRequest(0.0, tokens, 2) for tokens in (1, 3, 1)]
    for rows, batches in ((1, 3), (3, 1)):
        served = Served(worker, Traffic(requests, concurrent=rows), kind="static" if rows > 1 else "off")
        static = served.finished.counts.static
        assert (static.batches, static.rows_seen) == (batches, 3)


def test_continuous_batching_has_no_idle_rows_and_never_more_requests_than_allowed(continuous: Served) -> None:
    batch = continuous.batch
    assert IDLE not in batch.kind
    begins = [0, *batch.part_ends]
    assert max(end - begin for begin, end in zip(begins, batch.part_ends, strict=False)) <= ROWS
    assert sum(tokens for tokens, kind in zip(batch.tokens, batch.kind, strict=True) if kind == PREFILL) == sum(
        request.prompt_tokens for request in TRAFFIC.requests
    )
    assert batch.kind.count(DECODE) == sum(request.max_new_tokens - 1 for request in TRAFFIC.requests)


def test_a_prompt_longer_than_the_token_budget_is_cut_into_steps(continuous: Served) -> None:
    assert max(request.prompt_tokens for request in TRAFFIC.requests) > 32
    assert 0 < continuous.finished.counts.pages.widest_step_tokens <= 32


def test_every_page_that_is_taken_is_given_back(continuous: Served) -> None:
    taken_by: dict[tuple[int, int], int] = {}
    for event in only(continuous.events, PageMoves):
        for group, page, request in zip(event.group, event.page, event.request, strict=True):
            taken = taken_by.pop((group, page), None)
            assert (taken is None) is (request >= 0)
            if request >= 0:
                taken_by[group, page] = request
    assert taken_by == {}
    pages = continuous.batch.pages
    assert pages is not None
    assert sum(group.layers for group in pages.groups) == 8
    assert max(page for event in only(continuous.events, PageMoves) for page in event.page) < pages.groups[0].pages


def test_who_waits_is_told_why(static: Served, continuous: Served) -> None:
    assert {reason for event in only(static.events, Waits) for reason in event.reason} == {"batch"}
    assert {reason for event in only(continuous.events, Waits) for reason in event.reason} <= {"requests", "tokens"}
    assert continuous.batch.requests[REQUESTS - 1].waited_for


def test_both_are_proved_by_what_they_did(static: Served, continuous: Served) -> None:
    row = static.finding("batching")
    assert (row.effective, row.reached, row.expected, row.outcome) == ("static", REQUESTS, REQUESTS, "")
    row = continuous.finding("batching")
    steps = len(continuous.batch.end_s)
    assert (row.effective, row.reached, row.expected) == ("continuous", steps * 8, steps * 8)


@pytest.mark.parametrize("kind", ["static", "continuous"])
def test_a_cancelled_run_ends_after_the_step_in_flight_and_says_so_of_every_request(
    worker: LocalWorker, kind: str
) -> None:
    def stop(event: object) -> None:
        if isinstance(event, Steps):
            worker.runner.session.cancelled.set()

    worker.act = stop
    try:
        served = Served(worker, drawn(Draw(6, (5, 9), (200, 200)), 1, ROWS), kind=kind)
    finally:
        worker.act = lambda event: None
        worker.runner.session.cancelled.clear()
    assert served.finished.reason == "cancelled"
    assert served.finished.findings == []
    assert [row.reason for row in served.batch.requests.values()] == ["cancelled"] * 6
    assert 0 < len(served.batch.end_s) < 200
    assert worker.model.model.config._attn_implementation == "eager"  # not the paged one


def test_what_ends_a_step_of_continuous_batching_ends_the_run_with_its_cause(worker: LocalWorker) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise RuntimeError("the cache is on fire")

    with (
        mock.patch.object(PagedAttentionCache, "update", broken),
        pytest.raises(RuntimeError, match="the cache is on fire"),
    ):
        Served(worker, TRAFFIC, kind="continuous")
    assert worker.model.model.config._attn_implementation == "eager"
    assert Served(worker, TRAFFIC, kind="continuous", prove=False).finished.reason == "length"


def test_few_pages_make_requests_wait_for_pages_and_change_no_token(worker: LocalWorker, continuous: Served) -> None:
    few = msgspec.structs.replace(TRAFFIC, pages=5)
    served = Served(worker, few, prove=False, kind="continuous", step_tokens=32)
    reasons = {reason for event in only(served.events, Waits) for reason in event.reason}
    assert {"pages", "margin"} <= reasons
    assert served.finished.counts.pages.restarts
    assert [row.prompt_tokens for _, row in sorted(served.batch.requests.items())] == [
        request.prompt_tokens for request in TRAFFIC.requests
    ]
    assert served.ids == continuous.ids


def test_requests_are_served_after_they_arrive_and_an_end_of_text_ends_one(worker: LocalWorker) -> None:
    first = TrafficRequest(0.0, 4, prompt="Pip has a red")
    late = TrafficRequest(0.5, 4, prompt="Pip has a red")
    for kind in ("static", "continuous"):
        served = Served(worker, Traffic([first, late], 2), prove=False, kind=kind)
        rows = [served.batch.requests[i] for i in range(2)]
        assert rows[0].start_s is not None and rows[1].start_s is not None
        assert rows[0].start_s < late.arrival_s <= rows[1].start_s
        assert rows[0].ids == rows[1].ids
    eos, worker.model.eos = worker.model.eos, [rows[0].ids[1]]
    try:
        for kind in ("static", "continuous"):
            served = Served(worker, Traffic([first, late], 2), prove=False, ignore_eos=False, kind=kind)
            assert served.ids == [rows[0].ids[:2]] * 2
            assert [row.reason for row in served.batch.requests.values()] == ["eos", "eos"]
    finally:
        worker.model.eos = eos
