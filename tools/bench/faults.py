"""Recovery times after a crash: `python -m tools.bench.faults [--times N] [--compile]`.

For each phase: seconds from SIGKILL to a worker until a viewer that polls ten times a second sees the failure, until a
new worker is ready, and until it has loaded the model. Then: whether any process is left two seconds after the web
process was killed.
"""

import argparse
import os
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from backend.engine.bench import Bench
from backend.executors import open_bench
from backend.messages import Loaded, Progress
from backend.runs.records import ArmEvent, Record
from backend.views import live
from tests.backend.executors.test_subprocess import HOLD_THE_LOCK, kill_and_count, until, web
from tests.support.processes import group, pid_of, sitecustomize, wait_for, with_path
from tests.support.worker import request

PULL_EVERY_S = 0.1


def measure(bench: Bench, phase: str, choices: dict[str, str]) -> tuple[float, float, float]:
    """(shown, ready, loaded) in seconds since the kill, for an arm whose worker is killed when `phase` begins."""
    for slot in list(bench.pool.slots):
        bench.pool.drop(slot)
    append = bench.runs.append
    at_s: dict[str, float] = {}

    def watch(run_id: str, record: Record) -> None:
        append(run_id, record)
        match record:
            case ArmEvent(event=Progress(phase=begun, state="begin")) if begun == phase and "kill" not in at_s:
                at_s["kill"] = time.monotonic()
                os.kill(pid_of(bench, "A"), signal.SIGKILL)
            case ArmEvent(event=Progress(phase="start", state="end")) if "shown" in at_s:
                at_s.setdefault("ready", time.monotonic())
            case ArmEvent(event=Loaded()) if "shown" in at_s:
                at_s.setdefault("loaded", time.monotonic())

    def view(run_id: str) -> None:
        run = bench.runs.get(run_id)
        assert run is not None
        while not live.delta(run, 0, [[0, 0, 0]], 0.0).ended:
            time.sleep(PULL_EVERY_S)
        at_s["shown"] = time.monotonic()

    bench.runs.append = watch  # type: ignore[method-assign]
    try:
        run_id = bench.submit(request(choices, max_new_tokens=2000))
        viewer = threading.Thread(target=view, args=(run_id,))
        viewer.start()
        viewer.join(300)
        again = bench.wait(bench.submit(request({})), 120)
        assert again.status == "done", again.message
    finally:
        bench.runs.append = append  # type: ignore[method-assign]
    return at_s["shown"] - at_s["kill"], at_s["ready"] - at_s["kill"], at_s["loaded"] - at_s["kill"]


def worker_deaths(phases: list[str], times: int) -> None:
    bench = open_bench()
    bench.start()
    print("median (largest) seconds after the kill")
    print("   phase | shown | new worker ready | model loaded again")
    try:
        for phase in phases:
            choices = {"cache": "static", "compile": "default"} if phase == "compile" else {}
            found = [measure(bench, phase, choices) for _ in range(times)]
            columns = [f"{statistics.median(column):.2f} ({max(column):.2f})" for column in zip(*found, strict=True)]
            print(f"{phase:>8} | " + " | ".join(columns), flush=True)
    finally:
        bench.close()


def orphans(name: str, submit: str, state: str, before_kill: Callable[[int], object] = lambda pid: None) -> None:
    process = web(submit)
    pids = [int(until(process, state)[0])]
    before_kill(pids[0])
    wait_for(lambda: len(group(pids[0])) >= 1)
    members = len(group(pids[0]))
    left = kill_and_count(process, pids)
    what = f"web process killed while the worker {name}"
    print(f"{what}: {members} processes before, {len(left)} left after 2 s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--compile", action="store_true", help="kill in the compile phase too (slow)")
    options = parser.parse_args()
    print("load average at the start:", Path("/proc/loadavg").read_text().split()[0])
    worker_deaths(["start", "load", "warmup", "run", *(["compile"] if options.compile else [])], options.times)

    run = "bench.submit(request({}, max_new_tokens=3000))"
    orphans("starts", "bench.pool.wanted_spares = 1; bench.wake()", "")
    orphans("generates", run, "run")
    with tempfile.TemporaryDirectory() as folder:
        trigger = Path(folder) / "now"
        sitecustomize(Path(folder), HOLD_THE_LOCK.format(trigger=str(trigger), name="backend.worker"))
        os.environ["PYTHONPATH"] = with_path(Path(folder))

        def hold(pid: int) -> None:
            trigger.touch()
            wait_for(Path(f"{trigger}-held").exists)

        orphans("holds the interpreter lock in native code", run, "run", hold)
        if options.compile:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(folder) / "cache")
            trigger.unlink()
            submit = "bench.submit(request({'cache': 'static', 'compile': 'default'}))"
            orphans("compiles", submit, "compile", lambda pid: wait_for(lambda: len(group(pid)) >= 3))
    print("load average at the end:", Path("/proc/loadavg").read_text().split()[0])


if __name__ == "__main__":
    main()
