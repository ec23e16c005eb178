"""Runs in a process of their own: every record comes back, and a process that dies says how."""

import os
import signal

import msgspec
import psutil
import pytest

from tests.support.processes import gone, wait_for
from tests.support.worker import request
from tokendyno.backend import hardware
from tokendyno.backend.executors.trial_process import (
    Broken,
    Done,
    Impossible,
    TrialProcess,
    TrialTask,
    decode_answer,
    encode,
    unfit,
)
from tokendyno.backend.runs.records import Created, Ended

TASK = TrialTask([request({}, max_new_tokens=4)] * 2, None, hardware.detect().device, hardware.versions())


def test_another_device_or_other_versions_are_none_to_compare_on() -> None:
    assert unfit(TASK) == ""
    assert "trials are compared on mars" in unfit(msgspec.structs.replace(TASK, device="mars"))
    assert "the first machine 0.1" in unfit(msgspec.structs.replace(TASK, versions=TASK.versions | {"torch": "0.1"}))


@pytest.mark.full
def test_each_run_comes_back_whole_and_the_workers_end_with_the_process() -> None:
    process = TrialProcess(encode(TASK), {})
    answers = process.answers()
    done = decode_answer(next(answers))
    assert isinstance(done, Done) and isinstance(done.records[0], Created) and isinstance(done.records[-1], Ended)
    assert done.records[-1].status == "done"
    workers = psutil.Process(process._process.pid).children(recursive=True)
    os.kill(process._process.pid, signal.SIGKILL)
    with pytest.raises(Broken, match="was killed by signal 9"):
        next(answers)
    wait_for(lambda: all(gone(worker.pid) for worker in workers), 5, "its workers to be gone")


@pytest.mark.full
def test_what_cannot_run_there_is_answered() -> None:
    task = msgspec.structs.replace(TASK, device="mars")
    (answer,) = map(decode_answer, TrialProcess(encode(task), {}).answers())
    assert isinstance(answer, Impossible) and "cannot run trials" in answer.reason
