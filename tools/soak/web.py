"""The web process killed in the middle of a run: no orphan, nothing finished lost or doubled, the cut run marked."""

import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.support.ports import free_port
from tests.support.processes import gone
from tokendyno.backend.paths import ROOT
from tokendyno.backend.runs.records import Ended
from tokendyno.backend.runs.store import Store
from tools.soak.client import Visitor

ORPHAN_LIMIT_S = 2.0
MOMENTS = (
    ("A", "start"),
    ("A", "load"),
    ("A", "quantize"),
    ("A", "compile"),
    ("A", "warmup"),
    ("A", "run"),
    ("A", "prove"),
    ("B", "run"),
    ("B", "prove"),
)
"""An arm, and the phase that it has reached when the web process is killed, in turn."""

SMALL = {"prompt": "Once", "model": "pocket"}
CHOICES = {
    "quantize": {"axis-a-quantization": "quanto-int8"},
    "compile": {"axis-a-cache": "static", "axis-a-compile": "default", "axis-a-compile_cache": "fresh"},
}
"""Of the page's controls: what leads to a phase. The compiler starts anew each time."""

WITHIN_S = {"start": 2.0, "compile": 6.0, "run": 0.5}
"""How long after a phase's beginning the kill comes at most."""


@contextmanager
def app(history: Path, log: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A real app.py; yields the process and its address."""
    port = free_port()
    command = [sys.executable, "app.py", "--port", str(port), "--history", str(history), *options]
    with log.open("a") as errors:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if "ready" not in line:
            raise RuntimeError(f"app.py did not start: {line!r}, {log.read_text()[-500:]}")
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def kills(times: int, until_s: float, rng: random.Random) -> list[str]:
    """Kill it that many times, each time at another moment of a run; returns what was wrong."""
    wrong: list[str] = []
    finished: dict[str, int] = {}
    cut: list[str] = []
    starts, states = [], dict[str, int]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        history, done = folder / "history.sqlite", 0
        while done < times and time.monotonic() < until_s:
            begin_s = time.monotonic()
            with app(history, folder / "log") as (process, address), closing(Visitor(address)) as visitor:
                starts.append(time.monotonic() - begin_s)
                wrong += _check_earlier(visitor, finished, cut)
                if done % 5 == 0:
                    run_id = _submitted(visitor, max_new_tokens=16)
                    reply = _wait(visitor, run_id, lambda reply: reply["ended"], 180)
                    finished[run_id] = sum(part["n"] for part in reply["lanes"])
                moment = MOMENTS[done % len(MOMENTS)]
                run_id = _submitted(visitor, max_new_tokens=1500, **CHOICES.get(moment[1], {}))
                _wait(visitor, run_id, lambda reply, moment=moment: reply["ended"] or moment in _phases(reply), 180)
                time.sleep(rng.random() * WITHIN_S.get(moment[1], 0.02))
                reply = visitor.pull(run_id)
                cut.append(run_id)
                state = "ended" if reply["ended"] else " ".join(moment)
                states[state] = states.get(state, 0) + 1
                workers = psutil.Process(process.pid).children(recursive=True)
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                time.sleep(ORPHAN_LIMIT_S)
                left = [worker.pid for worker in workers if not gone(worker.pid)]
                if left:
                    wrong.append(
                        f"{len(left)} of {len(workers)} processes lived {ORPHAN_LIMIT_S:g} s after a kill in {state}"
                    )
                if reply["ended"]:
                    finished[cut.pop()] = sum(part["n"] for part in reply["lanes"])
            done += 1
            if done % 10 == 0:
                print(f"{done} kills so far", flush=True)
        wrong += _check_file(history, finished, cut)
    print(
        f"{done} kills of the web process, in {states}; {len(finished)} finished runs and {len(cut)} cut ones; "
        f"started again in {statistics.median(starts):.1f} s (most {max(starts):.1f})"
    )
    return wrong


def _submitted(visitor: Visitor, **values: object) -> str:
    run_id, message = visitor.submit(**SMALL, **values)
    if not run_id:
        raise RuntimeError(message)
    return run_id


def _wait(visitor: Visitor, run_id: str, claim: Any, limit_s: float) -> Any:
    until_s = time.monotonic() + limit_s
    while not claim(reply := visitor.pull(run_id)):
        if time.monotonic() > until_s:
            raise RuntimeError(f"run {run_id} stayed {reply['status']} for {limit_s:g} s")
        time.sleep(0.05)
    return reply


def _phases(reply: Any) -> list[tuple[str, str]]:
    return [(arm["name"], phase["name"]) for arm in reply["head"]["arms"] for phase in arm["phases"]]


def _check_earlier(visitor: Visitor, finished: dict[str, int], cut: list[str]) -> list[str]:
    """What the page tells of the runs before: the last few are enough, the file is checked at the end."""
    wrong = []
    for run_id in list(finished)[-3:]:
        reply = visitor.pull(run_id)
        if not reply.get("ended") or sum(part["n"] for part in reply["lanes"]) != finished[run_id]:
            wrong.append(f"the finished run {run_id} came back as {str(reply)[:200]}")
    for run_id in cut[-3:]:
        status = visitor.pull(run_id).get("status")
        if status != "interrupted":
            wrong.append(f"the cut run {run_id} is {status}")
    return wrong


def _check_file(history: Path, finished: dict[str, int], cut: list[str]) -> list[str]:
    wrong = []
    with closing(Store(history)) as store:
        for run_id in [*finished, *cut]:
            ends = [record.status for record in store.read(run_id) if isinstance(record, Ended)]
            if ends != (["done"] if run_id in finished else ["interrupted"]):
                wrong.append(f"run {run_id} ends {ends} in the file")
        return wrong + store.messages
