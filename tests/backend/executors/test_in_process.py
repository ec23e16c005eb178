"""The worker's loop in a thread of this process: the same tokens, a cancel at a token, and what a thread cannot do."""

import logging
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.processes import wait_for
from tests.support.worker import light as request
from tests.support.worker import plan_of
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.engine.executor import Died, Inbox, StartError
from tokendyno.backend.executors import in_process, open_bench
from tokendyno.backend.executors.in_process import InProcessWorker
from tokendyno.backend.messages import Failed, Load, Loaded, Ready
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import LoadPlan, Plan

pytest.importorskip("torch")
ARMS: tuple[dict[str, str], ...] = ({}, {"cache": "static", "loop": "own"})


class Forbidden:
    """Stands in for standard input."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError("the in-process executor used standard input")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A bench on in-process executors, in a process that must not exit and whose standard input is taken."""
    exits: list[int] = []
    monkeypatch.setattr(os, "_exit", exits.append)
    monkeypatch.setattr(sys, "stdin", Forbidden())
    bench = open_bench(executor="in-process")
    bench.start(prewarm=2)
    yield bench
    bench.close()
    assert exits == []


def finished_run(bench: Bench, **work: Any) -> Any:
    run = bench.wait(bench.submit(request(*ARMS, **work)), 120)
    assert run.status == "done", run.message
    return run


@pytest.mark.full
def test_two_arms_generate_the_tokens_of_two_subprocesses(bench: Bench, warm_bench: Bench) -> None:
    here = finished_run(bench, max_new_tokens=12)
    there = finished_run(warm_bench, max_new_tokens=12)
    for name in "AB":
        assert len(here.arms[name].ids) == 12 and here.arms[name].ids == there.arms[name].ids
        assert here.arms[name].text == there.arms[name].text
        effective = [{f.axis: f.effective for f in run.arms[name].finished.findings} for run in (here, there)]
        assert effective[0] == effective[1]
        assert here.arms[name].finished.memory_label == "resident memory of this process (RSS), not separable by arm"
        assert there.arms[name].finished.memory_label == "resident memory of the worker (RSS)"
    for arm in here.created.arms:
        assert any("memory is not separable" in verdict.reason for verdict in arm.verdicts)
    assert bench.pool.pids == [] and bench.pool.freeable_bytes(-1) >= 0


def test_a_cancel_stops_at_a_token_and_the_same_worker_runs_again(bench: Bench) -> None:
    run_id = bench.submit(request({}, max_new_tokens=3000))
    run = bench.runs.get(run_id)
    assert run is not None
    wait_for(lambda: run.arms["A"].ids, 60)
    executor = bench.pool.slots["A"].executor
    assert bench.cancel(run_id)
    assert bench.wait(run_id, 20).status == "cancelled"
    assert 0 < len(run.arms["A"].ids) < 3000
    assert executor.alive and bench.pool.slots["A"].executor is executor
    again = bench.wait(bench.submit(request({}, max_new_tokens=4)), 60)
    assert again.status == "done" and len(again.arms["A"].ids) == 4


def until(inbox: Inbox, *kinds: type) -> Any:
    """The first of these kinds of events."""
    while True:
        body = inbox.get(timeout=60).body
        if isinstance(body, kinds):
            return body


def test_a_load_that_fails_is_reported_and_the_thread_goes_on(tmp_path: Any) -> None:
    inbox = Inbox()
    worker = InProcessWorker(inbox)
    try:
        assert until(inbox, Ready).pid == os.getpid()
        worker.send(Load(Plan(LoadPlan(ModelSource("folder", path=str(tmp_path / "nowhere"))))))
        failed = until(inbox, Failed)
        assert failed.phase == "load" and not failed.fatal
        worker.send(Load(plan_of()))
        assert until(inbox, Loaded).weight_bytes > 0
    finally:
        worker.end()
    assert not worker.alive and not worker.busy


def test_one_that_is_busy_is_not_killed_and_says_so_and_no_other_starts(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from tokendyno.backend.worker import serve as module

    busy, done = threading.Event(), threading.Event()

    def stubborn(commands: Any, channel: Any, shared_process: bool) -> None:
        assert shared_process
        busy.set()
        done.wait(60)
        channel.send(Ready(0, 0.0, {}))

    monkeypatch.setattr(module, "serve", stubborn)
    monkeypatch.setattr(in_process, "END_WAIT_S", 0.1)
    inbox = Inbox()
    worker = InProcessWorker(inbox)
    assert busy.wait(60) and worker.alive
    with caplog.at_level(logging.WARNING, "tokendyno"):
        worker.end()
    assert worker.busy and not worker.alive
    assert "still busy and cannot be killed" in caplog.text
    with pytest.raises(StartError, match="cannot be stopped"):
        InProcessWorker(inbox)
    done.set()
    wait_for(lambda: not worker.busy)
    assert inbox.empty(), "no letter after its end"
    following = InProcessWorker(inbox)
    assert isinstance(until(inbox, Ready), Ready)
    assert until(inbox, Died).cause == "The in-process worker ended."
    assert not following.alive


def test_a_crash_of_the_loop_is_a_death_with_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    from tokendyno.backend.worker import serve as module

    def broken(*arguments: Any, **kwargs: Any) -> None:
        raise ImportError("no torch here")

    monkeypatch.setattr(module, "serve", broken)
    inbox = Inbox()
    worker = InProcessWorker(inbox)
    assert until(inbox, Died).cause == "The in-process worker failed: ImportError: no torch here"
    wait_for(lambda: not worker.busy)
