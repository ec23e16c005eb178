"""Faults in mid-run with real workers: killed, hung or cancelled in each phase."""

import os
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from tests.support.processes import gone, pid_of, wait_for
from tests.support.worker import light as request
from tokendyno.backend.config import Request
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.engine.exchange import PHASES
from tokendyno.backend.executors import KINDS, open_bench
from tokendyno.backend.messages import PhaseName, Progress
from tokendyno.backend.runs.records import ArmEvent, Record
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views import live

Long = Callable[[str], Request]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    bench = open_bench()
    bench.start()
    yield bench
    bench.close()


class Trap:
    """Does something once, when an arm begins a phase."""

    def __init__(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bench, self.sprung = bench, False
        self._append = bench.runs.append
        self._wanted: tuple[str, str] = ("", "")
        monkeypatch.setattr(bench.runs, "append", self._hook)

    def set(self, phase: str, act: Callable[[], object], arm: str = "A") -> None:
        self._wanted, self._act, self.sprung = (arm, phase), act, False

    def _hook(self, run_id: str, record: Record) -> None:
        self._append(run_id, record)
        match record:
            case ArmEvent(arm=arm, event=Progress(phase=phase, state="begin")) if (arm, phase) == self._wanted:
                self._wanted = ("", "")
                self.sprung = True
                self._act()

    def ended(self, run_id: str) -> Run:
        """The run when it has ended."""
        run = self.bench.runs.get(run_id)
        assert run is not None
        wait_for(lambda: run.ended, 30, "the run to end")
        assert self.sprung, "the trap was never reached"
        return run


@pytest.fixture(scope="module")
def shapes() -> Iterator[int]:
    """Prompt lengths; each run gets a new one, so that it warms up."""
    return iter(range(40, 100))


@pytest.fixture
def long(bench: Bench, shapes: Iterator[int], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Request]:
    """A long run of one arm that is sure to go through a phase, with a new worker if the phase needs one."""

    def make(phase: str) -> Request:
        if phase == "start":  # a forked worker has started at once
            monkeypatch.setattr(bench.pool, "choose", lambda plan: KINDS["subprocess"])
        if phase in ("start", "load"):
            for slot in list(bench.pool.slots):
                bench.pool.drop(slot)
        return request({}, max_new_tokens=3000, prompt_tokens=next(shapes))

    return make


@pytest.fixture
def trap(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Trap:
    return Trap(bench, monkeypatch)


def hit(bench: Bench, number: signal.Signals, slot: str = "A") -> Callable[[], None]:
    return lambda: os.kill(pid_of(bench, slot), number)


def works(bench: Bench) -> None:
    run = bench.wait(bench.submit(request({})), 60)
    assert run.status == "done", run.message


def test_a_killed_worker_is_shown_with_its_cause_and_the_next_run_works(bench: Bench, trap: Trap, long: Long) -> None:
    trap.set("run", hit(bench, signal.SIGKILL))
    run = trap.ended(bench.submit(long("run")))
    assert run.status == "failed" and not run.bad_input and run.arms["A"].state == "failed"
    assert "SIGKILL" in run.message and f"during {PHASES['run']}" in run.message
    assert live.delta(run, 0, [[0, 0, 0]], 0.0).ended
    works(bench)


def test_a_crash_in_native_code_is_named_by_its_signal(bench: Bench, trap: Trap) -> None:
    trap.set("run", hit(bench, signal.SIGSEGV))
    run = trap.ended(bench.submit(request({}, max_new_tokens=3000)))
    assert run.status == "failed" and "SIGSEGV" in run.message


@pytest.mark.slow
def test_the_death_of_an_arm_that_waits_its_turn_is_shown_at_once_and_what_was_measured_is_kept(
    bench: Bench, trap: Trap
) -> None:
    trap.set("run", hit(bench, signal.SIGKILL, "B"))
    run = trap.ended(bench.submit(request({}, {}, max_new_tokens=3000)))
    assert run.status == "failed" and "Arm B" in run.message and "SIGKILL" in run.message
    works(bench)


@pytest.mark.parametrize("phase", [pytest.param("load", marks=pytest.mark.full), "run"])
def test_a_worker_that_hangs_is_ended_at_its_deadline(
    bench: Bench, trap: Trap, long: Long, phase: PhaseName, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids: list[int] = []

    def stop() -> None:
        pids.append(pid_of(bench, "A"))
        os.kill(pids[0], signal.SIGSTOP)
        monkeypatch.setenv("TOKENDYNO_DEADLINE_S", "1")

    trap.set(phase, stop)
    run = trap.ended(bench.submit(long(phase)))
    assert run.status == "failed" and "no progress for 1 s" in run.message and PHASES[phase] in run.message
    assert gone(pids[0])


@pytest.mark.parametrize(
    ("phase", "kept"),
    [
        pytest.param("start", False, marks=pytest.mark.slow),
        pytest.param("warmup", True, marks=pytest.mark.slow),
        ("run", True),
    ],
)
def test_cancel_works_in_every_phase_and_keeps_a_worker_that_listens(
    bench: Bench, trap: Trap, long: Long, phase: PhaseName, kept: bool
) -> None:
    pids: list[int] = []
    ids: list[str] = []
    submitted = threading.Event()

    def cancel() -> None:
        submitted.wait(5)
        pids.append(pid_of(bench, "A"))
        assert bench.cancel(ids[0])

    trap.set(phase, lambda: threading.Thread(target=cancel).start())
    ids.append(bench.submit(long(phase)))
    submitted.set()
    run = trap.ended(ids[0])
    assert run.status == "cancelled" and "is kept" in run.message
    assert run.arms["A"].state == "cancelled"
    assert gone(pids[0]) is not kept
    works(bench)


@pytest.mark.slow
def test_cancelling_a_worker_that_does_not_listen_ends_it(bench: Bench, trap: Trap) -> None:
    ids: list[str] = []
    trap.set("run", hit(bench, signal.SIGSTOP))
    ids.append(bench.submit(request({}, max_new_tokens=3000)))
    wait_for(lambda: trap.sprung)
    pid = pid_of(bench, "A")
    assert bench.cancel(ids[0])
    run = bench.wait(ids[0], 10)
    assert run.status == "cancelled" and gone(pid)
    works(bench)
