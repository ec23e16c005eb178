"""What a run leaves in its worker: no cache of its own, which a later run's peak would hold, and no profiler."""

import gc
import weakref
from typing import Any
from unittest import mock

import pytest

from tests.support.local_worker import LocalWorker
from tests.support.worker import job_of, plan_of, traffic_job
from tokendyno.backend.messages import Generate
from tokendyno.backend.plan import BatchPlan
from tokendyno.backend.traffic.presets import drawn
from tokendyno.backend.traffic.requests import Draw
from tokendyno.backend.worker.runners.token_loops import Caches

TRAFFIC = drawn(Draw(3, (5, 8), (3, 4)), 1, 2)


@pytest.fixture(scope="module")
def worker() -> LocalWorker:
    return LocalWorker(plan_of("pocket", dtype="float32").load)


def caches_left(worker: LocalWorker, job: Generate) -> tuple[int, int]:
    """(made in the run, alive after it) KV caches."""
    caches: list[weakref.ref[Any]] = []
    original = Caches.make

    def make(self: Caches, *args: Any) -> Any:
        cache = original(self, *args)
        caches.append(weakref.ref(cache))
        return cache

    with mock.patch.object(Caches, "make", make):
        worker.run(job)
    gc.collect()
    alive = {id(cache_ref()) for cache_ref in caches if cache_ref() is not None}
    return len(caches), len(alive)


@pytest.mark.parametrize("prove", [True, False])
@pytest.mark.parametrize(("cache", "cached"), [("dynamic", 0), ("static", 1)])
def test_the_cache_of_a_run_is_gone_after_it_unless_the_next_run_uses_it_too(
    cache: str, cached: int, prove: bool, worker: LocalWorker
) -> None:
    plan = plan_of("pocket", dtype="float32", cache=cache)
    made, left = caches_left(worker, job_of(plan, max_new_tokens=4, prove=prove))
    assert made and left == cached


def test_a_run_of_many_requests_keeps_no_cache_either(worker: LocalWorker) -> None:
    job = traffic_job(plan_of("pocket", dtype="float32"), TRAFFIC, BatchPlan(kind="static"))
    made, left = caches_left(worker, job)
    assert made and left == 0
