"""Worker processes seen from outside: how they end, and that they leave nothing behind."""

import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import gone, group, sitecustomize, wait_for, with_path
from tests.support.worker import Talk, plan_of
from tokendyno.backend.engine.executor import Died, Inbox, StartError
from tokendyno.backend.executors.subprocess import WorkerProcess
from tokendyno.backend.paths import ROOT

WEB = """
import sys, time
from tokendyno.backend.executors import open_bench
from tokendyno.backend.executors.forked import TEMPLATE
from tests.support.worker import request
bench = open_bench()
bench.start()
{submit}
while True:
    arms = [next(iter(run.arms.values())) for run in bench.runs._runs.values()]
    print(*filter(None, [TEMPLATE.pid]), *bench.pool.pids, *(arm.state for arm in arms),
          *(phase for arm in arms for phase in arm.phases), flush=True)
    time.sleep(0.05)
"""
"""A process with an engine, like the web process; prints the pids of what forks workers and of workers, and the phases
of arm A."""

HOLD_THE_LOCK = """
import ctypes, os, sys, threading, time
def hold():
    while not os.path.exists({trigger!r}): time.sleep(0.01)
    open({trigger!r} + "-held", "w").close()
    ctypes.PyDLL(None).sleep(600)  # PyDLL keeps the interpreter lock
def begin():
    if not begun:
        begun.append(threading.Thread(target=hold, daemon=True))
        begun[0].start()
begun = []
if {name!r} in sys.orig_argv: os.register_at_fork(after_in_child=begin)  # in a worker, and not again in its guard
"""


def web(submit: str) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": with_path(ROOT)}
    command = [sys.executable, "-c", WEB.format(submit=submit)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)


def until(process: subprocess.Popen[str], *words: str) -> list[str]:
    """Read the web process's output up to a line with all these words; "" stands for any one word."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.split() and set(words) <= {*line.split(), ""}:
            return line.split()
    raise AssertionError("the web process ended")


def test_a_cache_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").touch()
    monkeypatch.setenv("TOKENDYNO_CACHE", str(tmp_path / "cache"))
    with pytest.raises(StartError, match="Set TOKENDYNO_CACHE to another"):
        WorkerProcess(queue.SimpleQueue())


def pids_of(line: list[str]) -> list[int]:
    """What a line of the web process begins with."""
    return [int(word) for word in line if word.isdecimal()]


def kill(process: subprocess.Popen[str], pids: list[int]) -> None:
    """SIGKILL the web process, and wait until its workers' groups are gone."""
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
    wait_for(lambda: not any(group(pid) for pid in pids), what="the workers to end")


@pytest.mark.slow
def test_no_orphan_once_the_web_process_was_killed_while_its_worker_starts() -> None:
    process = web("bench.pool.wanted_spares = 1; bench.wake()")
    pids = pids_of(until(process, ""))
    time.sleep(0.3)
    kill(process, pids)


def test_no_orphan_once_the_web_process_was_killed_while_its_worker_generates() -> None:
    process = web("bench.submit(request({}, max_new_tokens=3000))")
    pids = pids_of(until(process, "run"))
    assert len(pids) == 2 and all(group(pid) for pid in pids)
    kill(process, pids)


@pytest.mark.full
def test_no_orphan_once_the_web_process_was_killed_while_native_code_holds_its_workers_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trigger = tmp_path / "now"
    sitecustomize(tmp_path, HOLD_THE_LOCK.format(trigger=str(trigger), name="tokendyno.backend.worker.template"))
    monkeypatch.setenv("PYTHONPATH", with_path(tmp_path))
    process = web("bench.submit(request({}, max_new_tokens=3000))")
    pids = pids_of(until(process, "run"))
    trigger.touch()
    wait_for(Path(f"{trigger}-held").exists, what="the lock to be held")
    kill(process, pids)


def test_a_killed_worker_is_told_once_takes_its_children_with_it_and_may_still_be_sent_to() -> None:
    talk = Talk()
    wait_for(lambda: len(group(talk.worker.pid)) >= 2, what="the guard")
    os.kill(talk.worker.pid, signal.SIGKILL)
    died = talk.until(Died)[-1]
    assert "SIGKILL" in died.cause
    wait_for(lambda: not group(talk.worker.pid), what="the group to be gone")
    talk.begin(plan_of())
    with pytest.raises(queue.Empty):
        talk.inbox.get(timeout=0.5)


@pytest.mark.slow
def test_ending_a_stopped_worker_works_and_what_it_said_reaches_nobody() -> None:
    talk = Talk()
    os.kill(talk.worker.pid, signal.SIGSTOP)
    talk.worker.end()
    assert gone(talk.worker.pid) and not talk.worker.alive
    time.sleep(0.6)
    with pytest.raises(queue.Empty):
        talk.inbox.get_nowait()


@pytest.fixture
def cause_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Why a worker died whose torch is these lines."""

    def cause(torch: str) -> str:
        (tmp_path / "torch.py").write_text(torch)
        monkeypatch.setenv("PYTHONPATH", with_path(tmp_path))
        inbox: Inbox = Inbox()
        worker = WorkerProcess(inbox)
        monkeypatch.undo()
        body = inbox.get(timeout=20).body
        worker.end()
        assert isinstance(body, Died) and "hf_AbCdEf" not in body.cause
        return body.cause

    return cause


def test_a_worker_that_cannot_start_is_told_with_its_last_words(cause_of: Callable[[str], str]) -> None:
    cause = cause_of("raise ImportError('no torch for you hf_AbCdEf1234567890')\n")
    assert "code 1" in cause and "no torch for you" in cause


WHAT = "terminate called after throwing an instance of X\n  what():  peer closed hf_AbCdEf1234567890\n"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (f"sys.stderr.write({WHAT!r})", "It said: what():  peer closed"),
        ("import faulthandler; faulthandler.enable()", "It said: Fatal Python error: Aborted"),
        ("sys.stderr.write('nothing of it')", ""),
    ],
)
def test_a_worker_that_aborts_is_told_with_the_reason(code: str, said: str, cause_of: Callable[[str], str]) -> None:
    cause = cause_of(f"import os, sys\n{code}\nsys.stderr.flush()\nos.abort()\n")
    assert "was killed by SIGABRT." in cause and said in cause and ("It said" in cause) is bool(said)
