"""The engine runs on any executor: here a throw-away one that is in no list, with faults on request."""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from tests.support.command_line import POCKET
from tests.support.processes import wait_for
from tests.support.scripted_executor import SCRIPTED, Fault, ScriptedExecutor
from tests.support.worker import request
from tokendyno.backend.engine import bench as bench_module
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.engine.executor import ExecutorKind, Inbox, StartError
from tokendyno.backend.errors import InputError
from tokendyno.backend.hardware import peak_rates

BenchOf = Callable[..., Bench]


@pytest.fixture
def bench_of() -> Iterator[BenchOf]:
    """Makes a bench with one kind of executor."""
    benches: list[Bench] = []

    def make(kind: ExecutorKind, prewarm: int = 0) -> Bench:
        bench = Bench(lambda plan: kind)
        bench.start(prewarm)
        benches.append(bench)
        return bench

    yield make
    for bench in benches:
        bench.close()


def faulty(fault: Fault) -> ExecutorKind:
    return ExecutorKind(lambda inbox: ScriptedExecutor(inbox, fault))


def test_a_run_is_given_fresh_workers_where_it_asks_for_them(bench_of: BenchOf) -> None:
    bench = bench_of(SCRIPTED)
    used = []
    for fresh in (False, False, True):
        assert bench.wait(bench.submit(request({}), fresh=fresh), 10).status == "done"
        used.append(bench.pool.slots["A"].executor)
    assert used[0] is used[1] and used[2] is not used[1]


def test_the_part_of_the_model_that_an_executor_dies_of_is_named(bench_of: BenchOf) -> None:
    bench = bench_of(faulty("dies reading"))
    assert bench.wait(bench.submit(request({})), 10).message == (
        "Arm A stopped during the measured run: The script says so. Run again. The model's tokenizer (tokenizer.json) "
        "was being used. Copy it again from the original checkpoint, or choose another model."
    )


def test_a_run_whose_tokens_keep_coming_outlives_its_deadline(
    bench_of: BenchOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENDYNO_DEADLINE_S", "1")
    bench = bench_of(faulty("slow"))
    run = bench.wait(bench.submit(request({}, max_new_tokens=15)), 30)
    assert run.status == "done", run.message


def test_a_download_of_which_no_byte_arrives_is_ended_at_its_deadline(
    bench_of: BenchOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENDYNO_DEADLINE_S", "0.3")
    bench = bench_of(faulty("stalls"))
    run = bench.wait(bench.submit(request({})), 10)
    assert run.status == "failed" and "Arm A made no progress for 0.3 s during download" in run.message


def test_a_kind_that_cannot_start_fails_the_run_in_one_sentence(bench_of: BenchOf) -> None:
    def refuse(inbox: Inbox) -> ScriptedExecutor:
        raise StartError("No executor is free.")

    bench = bench_of(ExecutorKind(refuse))
    run = bench.wait(bench.submit(request({})), 10)
    assert (run.status, run.message) == ("failed", "Arm A failed during startup. No executor is free.")


def test_workers_are_started_ahead_only_when_somebody_is_about_to_run(
    bench_of: BenchOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tokendyno.backend.engine.bench.PREWARM_AFTER_S", 0.0)
    started: list[ScriptedExecutor] = []
    bench = bench_of(ExecutorKind(lambda inbox: ScriptedExecutor(inbox, "", started)))
    time.sleep(0.1)
    assert started == []
    bench.expect_run()
    wait_for(lambda: len(started) == 2)
    bench.expect_run()
    time.sleep(0.1)
    assert len(started) == 2


def test_arms_on_a_kind_without_memory_of_its_own_take_turns_and_the_run_says_so(bench_of: BenchOf) -> None:
    started: list[ScriptedExecutor] = []
    alive: list[int] = []

    def start(inbox: Inbox) -> ScriptedExecutor:
        alive.append(sum(executor.alive for executor in started))
        return ScriptedExecutor(inbox, "", started)

    bench = bench_of(ExecutorKind(start, isolated=False, remark="All arms share this process."), prewarm=2)
    time.sleep(0.1)
    assert started == [], "none is started ahead of a run"
    run = bench.wait(bench.submit(request({}, {"cache": "unwindowed"}, repeats=2)), 10)
    assert run.status == "done", run.message
    assert alive == [0, 0, 0, 0] and len(started) == 4
    for arm in run.created.arms:
        assert [verdict.reason for verdict in arm.verdicts] == ["All arms share this process."]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("tokenizer.json", None, "has no tokenizer"),
        ("tokenizer.json", "{", "tokenizer.json is cut off"),
        ("model.safetensors", "", "is not a complete safetensors file"),
    ],
)
def test_nothing_is_started_for_a_model_that_cannot_be_loaded(
    bench_of: BenchOf, tmp_path: Path, name: str, text: str | None, said: str
) -> None:
    started: list[ScriptedExecutor] = []
    bench = bench_of(ExecutorKind(lambda inbox: ScriptedExecutor(inbox, "", started)))
    for one in ("config.json", "model.safetensors", "tokenizer.json"):
        if one != name:
            shutil.copy(POCKET / one, tmp_path)
    if text is not None:
        (tmp_path / name).write_text(text)
    job = msgspec.structs.replace(request({}, {"cache": "unwindowed"}), model=str(tmp_path))
    with pytest.raises(InputError, match=said):
        bench.submit(job)
    assert started == [] and bench.runs.newest("") is None


@pytest.mark.parametrize("asked", [True, False])
def test_the_bandwidth_is_measured_between_runs_until_it_is_settled(
    bench_of: BenchOf, monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    """First a run comes in between: then it is still due."""
    answers, seen = [False, True], []

    def measure(machine: object, stopped: Callable[[], bool]) -> bool:
        assert not stopped()
        seen.append(time.monotonic())
        return answers.pop(0)

    monkeypatch.setattr(peak_rates, "measure_once", measure)
    monkeypatch.setattr(bench_module, "QUIET_S", 0.2)
    bench = Bench(lambda plan: SCRIPTED)
    bench.start(measure_when_idle=asked)
    try:
        assert bench.wait(bench.submit(request({})), 10).status == "done"
        ended_s = time.monotonic()
        wait_for(lambda: len(seen) == 2 or (not asked and time.monotonic() > ended_s + 0.5))
    finally:
        bench.close()
    assert len(seen) == (2 if asked else 0)
