"""The bench with real workers and the embedded model: order, reuse, the queue, cancelling, the log."""

import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.processes import gone, pid_of, wait_for
from tests.support.worker import light as request
from tokendyno.backend.config import ArmRequest, Request, reading_of
from tokendyno.backend.engine import pool
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.engine.executor import HOST, Inbox
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors import open_bench, subprocess
from tokendyno.backend.hardware import Machine, detect
from tokendyno.backend.hosting.limits import LIMITS
from tokendyno.backend.hosting.visitor import LOCAL, Visitor
from tokendyno.backend.messages import Finished, Loaded, Progress
from tokendyno.backend.quality import Quality, QualityText
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.records import ArmEvent, Ended
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.store import Store
from tokendyno.backend.views import live

MakeBench = Callable[..., Bench]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """One bench with a history, shared by tests that leave its workers well."""
    bench = open_bench(tmp_path_factory.mktemp("history") / "history.sqlite")
    bench.start()
    yield bench
    bench.close()


def finish(bench: Bench, *arms: dict[str, str], owner: str = LOCAL, **work: Any) -> Run:
    run = bench.wait(bench.submit(request(*arms, **work), Visitor(owner)), 120)
    assert run.status == "done", run.message
    return run


def events(bench: Bench, run: Run) -> list[ArmEvent]:
    return [record for record in bench.store.read(run.id) if isinstance(record, ArmEvent)]


@pytest.fixture(scope="module")
def repeated(bench: Bench) -> Run:
    """Two arms, twice."""
    return finish(bench, {}, {"cache": "unwindowed"}, max_new_tokens=30, repeats=2)


def test_arms_run_in_turn_and_never_at_the_same_time(bench: Bench, repeated: Run) -> None:
    run = repeated
    turns = [(e.repeat, e.arm) for e in events(bench, run) if isinstance(e.event, Finished)]
    assert turns == [(0, "A"), (0, "B"), (1, "A"), (1, "B")]
    proved = [bool(e.event.findings) for e in events(bench, run) if isinstance(e.event, Finished)]
    assert proved == [False, False, True, True], "a profile may slow what comes after it"
    busy = ""
    for record in events(bench, run):
        match record.event:
            case Progress(phase="warmup" | "run", state="begin"):
                assert busy in ("", record.arm)
                busy = record.arm
            case Finished():
                busy = ""


def test_each_arm_has_a_process_of_its_own(bench: Bench, repeated: Run) -> None:
    assert pid_of(bench, "A") != pid_of(bench, "B") and os.getpid() not in bench.pool.pids


def test_the_second_run_reuses_processes_and_models(make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the first run left: in so small a worker it comes near what is tolerated."""
    monkeypatch.setattr(pool, "TOLERATED_SHARE", 1.0)
    bench = make_bench()
    finish(bench, {}, {"cache": "unwindowed"})
    before = bench.pool.pids
    run = finish(bench, {"cache": "static"}, {})
    assert bench.pool.pids == before
    assert [e.event.reused for e in events(bench, run) if isinstance(e.event, Loaded)] == [True, True]


def test_a_run_folds_the_same_from_memory_and_from_the_history(bench: Bench, repeated: Run) -> None:
    run = repeated
    again = RunLog(bench.store).get(run.id)
    assert again is not None and again is not run
    assert again.arms == run.arms and again.version == run.version
    start = [[0, 0, 0]] * 2
    assert live.delta(again, 0, start, 1.0) == live.delta(run, 0, start, 1.0)
    assert [again.snapshot().summaries[name] for name in "AB"] == [run.snapshot().summaries[name] for name in "AB"]


def test_a_queued_run_is_cancelled_before_it_begins_and_the_one_at_work_is_left_alone(bench: Bench) -> None:
    first = bench.submit(request({}, max_new_tokens=60))
    second = bench.submit(request({}))
    assert bench.cancel(second)
    run = bench.runs.get(second)
    assert run is not None and run.status == "cancelled" and not run.arms["A"].phases
    assert bench.wait(first, 60).status == "done" and not bench.cancel(second) and not bench.cancel(first)


@pytest.mark.parametrize(
    ("mine", "asks", "allowed"),
    [("ada", "ada", True), ("ada", "bob", False), ("ada", LOCAL, False), (LOCAL, "bob", False)],
)
def test_only_its_owner_can_cancel_a_run(bench: Bench, mine: str, asks: str, allowed: bool) -> None:
    run_id = bench.submit(request({}, max_new_tokens=3000), Visitor(mine))
    assert bench.cancel(run_id, Visitor(asks)) is allowed
    assert allowed or bench.cancel(run_id, Visitor(mine))
    assert bench.wait(run_id, 10).status == "cancelled"


def test_a_full_queue_refuses_with_advice_and_takes_runs_again_when_it_has_drained(bench: Bench) -> None:
    ids = [bench.submit(request({}, max_new_tokens=3000))]
    wait_for(lambda: bench._current is not None)
    ids += [bench.submit(request({})) for _ in range(LIMITS["local"].queued_runs)]
    with pytest.raises(InputError, match=r"with 16 runs waiting\. Wait"):
        bench.submit(request({}))
    assert [bench.cancel(run_id) for run_id in reversed(ids)] == [True] * len(ids)
    assert {bench.wait(run_id, 10).status for run_id in ids} == {"cancelled"}
    finish(bench, {})


def test_a_blocked_arm_is_refused_before_anything_starts(bench: Bench) -> None:
    newest = bench.runs.newest(LOCAL)
    with pytest.raises(InputError, match="cache=static"):
        bench.submit(request({"loop": "own"}))
    with pytest.raises(InputError, match=r"^Arm B: .*cache=static"):
        bench.submit(request({}, {"loop": "own"}))
    with pytest.raises(InputError, match=r"^Arm A: .*cache=static.* Arm B: .*cache=dynamic"):
        bench.submit(request({"loop": "own"}, {"cache": "offloaded"}))
    assert bench.runs.newest(LOCAL) == newest


WHOLE = {"dtype": "float32"}


def test_a_prompt_that_does_not_fit_is_bad_input_and_keeps_the_worker(bench: Bench) -> None:
    with pytest.raises(InputError, match="4,092 prompt tokens and"):
        bench.submit(request(WHOLE, prompt="word " * 4090))
    finish(bench, WHOLE)
    dense = "\U0001f98a" * 1500  # so few bytes are not counted before a worker does
    run = bench.wait(bench.submit(request(WHOLE, prompt=dense)), 60)
    assert run.status == "failed" and run.bad_input and "positions" in run.message
    worker = bench.pool.slots["A"]  # what earlier runs left there decides whether it measures the next one
    assert worker.executor.alive and worker.residue.running is None
    finish(bench, WHOLE)


def test_a_reading_that_breaks_off_ends_its_worker(bench: Bench) -> None:
    """What the first text left there would count as the next run's memory."""
    finish(bench, WHOLE)
    worker = pid_of(bench, "A")
    quality = Quality([QualityText("long", "One day, Pip found a ball. " * 20), QualityText("short", "One")])
    run = bench.wait(bench.submit(Request("pocket", [ArmRequest("A", WHOLE)], reading_of(quality), None, quality)), 60)
    assert run.status == "failed" and run.bad_input, run.message
    assert "A" not in bench.pool.slots and gone(worker)


@pytest.mark.slow
def test_out_of_memory_in_a_worker_fails_the_run_and_the_next_one_gets_a_fresh_process(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a worker that is kept whatever the first run left: its limit would go with it."""
    monkeypatch.setattr(pool, "TOLERATED_SHARE", 1.0)
    bench = make_bench()
    finish(bench, {})
    pid = pid_of(bench, "A")
    held = psutil.Process(pid).memory_info().vms
    resource.prlimit(pid, resource.RLIMIT_AS, (held + (256 << 20), resource.RLIM_INFINITY))
    run = bench.wait(bench.submit(request({}, prompt_tokens=1500, batch_size=16)), 60)
    assert run.status == "failed" and not run.bad_input
    assert "Out of memory" in run.message and "smaller" in run.message and "Traceback" not in run.message
    finish(bench, {})
    assert pid_of(bench, "A") != pid and gone(pid)


@pytest.mark.slow
def test_two_models_that_do_not_fit_together_take_turns(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for one and a half arms: each load finds the other arm's process gone."""
    finish(bench, {})
    bench.pool.drop("B")  # of an earlier test: two workers can hold more than was predicted for two arms
    one = max(bench.check(request({}))["A"].memory.total, bench.pool.slots["A"].freeable_bytes[HOST])
    room = one * 3 // 2

    def small() -> Machine:
        held = bench.pool.freeable_bytes(HOST)
        return replace(detect(), gpus=(), free_bytes=max(0, room - held))

    monkeypatch.setattr(bench, "machine", small)
    alive_at_load: list[int] = []
    append = bench.runs.append

    def watch(run_id: str, record: object) -> None:
        if isinstance(record, ArmEvent) and isinstance(record.event, Loaded):
            alive_at_load.append(len([pid for pid in bench.pool.pids if not gone(pid)]))
        append(run_id, record)  # type: ignore[arg-type]

    monkeypatch.setattr(bench.runs, "append", watch)
    run = finish(bench, {}, {"dtype": "float16"})
    assert alive_at_load == [1, 1] and len(bench.pool.pids) == 1
    turns = [(e.arm, type(e.event)) for e in events(bench, run) if isinstance(e.event, Loaded | Finished)]
    assert turns == [("A", Loaded), ("A", Finished), ("B", Loaded), ("B", Finished)]


def test_closing_ends_the_run_at_work_those_that_wait_and_all_workers(make_bench: MakeBench, tmp_path: Path) -> None:
    bench = make_bench(tmp_path / "history.sqlite")
    ids = [bench.submit(request({}, max_new_tokens=3000)), bench.submit(request({}))]
    wait_for(lambda: bench.pool.pids)
    pids = bench.pool.pids
    bench.close()
    assert {bench.wait(run_id, 1).status for run_id in ids} == {"cancelled"}
    assert all(gone(pid) for pid in pids)
    records = Store(tmp_path / "history.sqlite").read(ids[1])
    assert isinstance(records[-1], Ended) and records[-1].status == "cancelled"


@pytest.mark.full
def test_prewarmed_workers_are_replaced_when_they_die_and_used_by_the_next_run(make_bench: MakeBench) -> None:
    bench = make_bench(prewarm=1)
    wait_for(lambda: bench.pool.pids)
    first = bench.pool.pids[0]
    wait_for(lambda: bench.pool.spares and bench.pool.spares[0].ready)
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: bench.pool.pids and bench.pool.pids[0] != first)
    wait_for(lambda: bench.pool.spares and bench.pool.spares[0].ready)
    second = bench.pool.pids[0]
    run = finish(bench, {})
    assert pid_of(bench, "A") == second and "start" not in run.arms["A"].phases


def test_workers_that_never_start_are_given_up_and_a_run_says_why(
    make_bench: MakeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "MAX_START_FAILURES", 2)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    started: list[int] = []
    begin = subprocess.WorkerProcess.__init__

    def count(self: subprocess.WorkerProcess, inbox: Inbox) -> None:
        begin(self, inbox)
        started.append(self.pid)

    monkeypatch.setattr(subprocess.WorkerProcess, "__init__", count)
    bench = make_bench(prewarm=1)
    wait_for(lambda: len(started) == 2, 10)
    time.sleep(0.5)
    assert len(started) == 2
    run = bench.wait(bench.submit(request({})), 10)
    assert run.status == "failed" and "code 1" in run.message
