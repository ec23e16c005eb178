"""The short form of the fault bench; `python -m tools.soak` has the long ones."""

import os
import random
import subprocess
import sys
import time

import pytest

from backend.paths import ROOT
from tests.support.processes import with_path


def soak(*arguments: str) -> str:
    """Run a bench in a process of its own: it changes the limits and the clock of its process."""
    env = {**os.environ, "PYTHONPATH": with_path(ROOT)}
    command = [sys.executable, "-m", "tools.soak", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=env, text=True, capture_output=True, timeout=280)
    assert done.returncode == 0 and "nothing was wrong" in done.stdout, done.stdout + done.stderr[-2000:]
    return done.stdout


@pytest.mark.slow
def test_a_worker_killed_in_any_phase_costs_its_run_alone_and_leaves_nothing_behind() -> None:
    told = soak("kills", "--times", "3", "--phases", "start,warmup,run")
    assert "kills by phase: {'start': 1, 'warmup': 1, 'run': 1}" in told


@pytest.mark.full
def test_a_history_that_fails_during_a_run_is_said_and_the_run_is_kept() -> None:
    told = soak("history")
    assert told.count("kept whole") == 6


@pytest.mark.slow
def test_a_hub_that_vanishes_during_a_download_costs_that_run_alone() -> None:
    told = soak("hub")
    assert "during download" in told and "and with the Hub back: done" in told


@pytest.mark.slow
def test_the_web_process_killed_in_the_middle_of_a_run_loses_nothing_that_was_finished() -> None:
    from tools.soak import web

    assert web.kills(1, time.monotonic() + 200, random.Random(1)) == []
