"""What a run leaves in its worker: no cache of its own, which a later run's peak would hold, and no profiler."""

import gc
import weakref
from typing import Any
from unittest import mock

import msgspec
import pytest

from tests.support.local_worker import LocalWorker
from tests.support.worker import SENTENCE, plan_of
from tokendyno.backend.config import workload_of
from tokendyno.backend.messages import Generate
from tokendyno.backend.plan import BatchPlan
from tokendyno.backend.traffic.draw import Draw
from tokendyno.backend.traffic.presets import drawn
from tokendyno.backend.worker.runners.cache import Caches

TRAFFIC = drawn(Draw(3, (5, 8), (3, 4)), 1, 2)


@pytest.fixture(scope="module")
def worker() -> LocalWorker:
    return LocalWorker(plan_of("pocket", dtype="float32").load)


def caches_left(worker: LocalWorker, job: Generate) -> tuple[int, int]:
    """(made in the run, alive after it) KV caches."""
    made: list[weakref.ref[Any]] = []
    plain = Caches.make

    def make(self: Caches, *args: Any) -> Any:
        cache = plain(self, *args)
        made.append(weakref.ref(cache))
        return cache

    with mock.patch.object(Caches, "make", make):
        worker.run(job)
    gc.collect()
    alive = {id(one()) for one in made if one() is not None}
    return len(made), len(alive)


@pytest.mark.parametrize("prove", [True, False])
@pytest.mark.parametrize(("cache", "kept"), [("dynamic", 0), ("static", 1)])
def test_the_cache_of_a_run_is_gone_after_it_unless_the_next_run_uses_it_too(
    cache: str, kept: int, prove: bool, worker: LocalWorker
) -> None:
    plan = plan_of("pocket", dtype="float32", cache=cache)
    made, left = caches_left(worker, Generate(plan, SENTENCE, 0, 4, 1, 0.0, 0, True, warmup=False, prove=prove))
    assert made and left == kept


def test_a_run_of_many_requests_keeps_no_cache_either(worker: LocalWorker) -> None:
    plan, work = plan_of("pocket", dtype="float32"), workload_of(TRAFFIC)
    generate = msgspec.structs.replace(plan.generate, batch=BatchPlan(kind="static"))
    job = Generate(
        msgspec.structs.replace(plan, generate=generate),
        "",
        work.prompt_tokens,
        work.max_new_tokens,
        work.batch_size,
        0.0,
        0,
        True,
        False,
        prove=False,
        traffic=TRAFFIC,
    )
    made, left = caches_left(worker, job)
    assert made and left == 0


@pytest.mark.parametrize("prove", [True, False])
def test_the_profiler_is_detached_after_the_last_profile_and_before_what_is_left_is_measured(
    prove: bool, worker: LocalWorker
) -> None:
    from tokendyno.backend.worker.prove import profile
    from tokendyno.backend.worker.runners import base

    calls: list[str] = []

    def noting(name: str, plain: Any) -> Any:
        def call(*args: Any) -> Any:
            calls.append(name)
            return plain(*args)

        return call

    job = Generate(plan_of("pocket", dtype="float32"), SENTENCE, 0, 4, 1, 0.0, 0, True, warmup=True, prove=prove)
    with (
        mock.patch.object(base, "trace", noting("trace", profile.trace)),
        mock.patch.object(base.MeasuredRunner, "_detach_profiler", noting("detach", lambda self: 1.0)),
        mock.patch.object(base.MeasuredRunner, "_note_left", noting("left", base.MeasuredRunner._note_left)),
    ):
        finished = worker.run(job)
    assert calls == (["trace", "detach", "left"] if prove else [])
    assert finished.extra.profiler_attached == (1.0 if prove else None)


@pytest.mark.parametrize("detached", [True, False])
def test_the_gpu_has_finished_before_the_profiler_is_detached(detached: bool) -> None:
    from tokendyno.backend.worker.runners import base

    done = mock.Mock()
    done.detach.return_value = detached
    call = base.MeasuredRunner._detach_profiler
    with mock.patch("torch.cuda.synchronize", done.synchronize), mock.patch.object(base, "detach", done.detach):
        assert call(mock.Mock(_cuda=False)) is None and not done.mock_calls
        assert call(mock.Mock(_cuda=True)) == float(not detached)
    assert done.mock_calls == [mock.call.synchronize(), mock.call.detach()]
