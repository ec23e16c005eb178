"""Runs the app's bench as a ZeroGPU Space does: `python -m tests.support.zero_gpu cpu|cuda|ordinary`.

The package `spaces` is the real one. `cpu` and `cuda`: it schedules, forks, queues and releases; what it talks to is a
small HTTP server here, and its module that patches torch does nothing, so that a fork computes on this machine's CPU or
GPU. `ordinary`: there is no platform, and `spaces` calls the function in this process, as on a GPU of one's own. Prints
what was seen as JSON.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

from tests.support.worker import light
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.executors import open_bench
from tokendyno.backend.runs.run import Run

ASKED: list[tuple[str, dict[str, str]]] = []
"""Each request to the platform: its path and its parameters."""


class Platform(BaseHTTPRequestHandler):
    """Lends a GPU to whoever asks, always to a new process."""

    def do_POST(self) -> None:
        url = urlparse(self.path)
        ASKED.append((url.path, {name: values[0] for name, values in parse_qs(url.query).items()}))
        body = b"{}"
        if url.path == "/schedule":
            body = json.dumps(
                {"idle": False, "nvidiaIndex": 0, "nvidiaUUID": "GPU-0", "allowToken": str(len(ASKED))}
            ).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        pass


def stand_in() -> None:
    """The environment of a ZeroGPU Space, and nothing in place of what patches torch. Forks use the device that
    TOKENDYNO_DEVICE names, as workers do."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Platform)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    cgroup = Path(tempfile.mkdtemp()) / "cgroup"
    cgroup.write_text("0::/space\n")
    os.environ |= {
        "SPACES_ZERO_GPU": "true",
        "SPACES_ZERO_DEVICE_API_URL": f"http://127.0.0.1:{server.server_port}",
        "ZEROGPU_PROC_SELF_CGROUP_PATH": str(cgroup),
    }
    stub = types.ModuleType("spaces.zero.torch")
    for name in ("patch", "unpatch", "init", "move", "enter_mode", "is_in_bad_fork"):
        setattr(stub, name, lambda *arguments, **more: None)
    for name in ("pack", "size"):
        setattr(stub, name, lambda: 0)
    sys.modules["spaces.zero.torch"] = stub


def parameters(path: str) -> list[dict[str, str]]:
    """Those of every request to one path."""
    return [found for asked, found in ASKED if asked == path]


def until(condition: Callable[[], Any]) -> Any:
    """The first true value, within a minute."""
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        if found := condition():
            return found
        time.sleep(0.02)
    raise TimeoutError


def of_two_arms(bench: Bench) -> Run:
    """A run of the arms that are compared with those of worker processes."""
    return bench.wait(bench.submit(light({}, {"cache": "static", "loop": "own"}, max_new_tokens=8)), 120)


def tokens_of(bench: Bench) -> dict[str, list[int]]:
    """The tokens of those arms, by arm."""
    return {name: arm.ids for name, arm in of_two_arms(bench).arms.items()}


def tokens_of_processes() -> dict[str, list[int]]:
    """The same in worker processes."""
    bench = open_bench()
    bench.start()
    try:
        return tokens_of(bench)
    finally:
        bench.close()


def seen_of_any(bench: Bench) -> dict[str, Any]:
    """Two arms, and a run that is stopped."""
    both = of_two_arms(bench)
    stopped = begun(bench)
    bench.cancel(stopped)
    again = bench.wait(stopped, 60)
    return {
        "own": os.getpid(),
        "status": both.status,
        "message": both.message,
        "device": both.created.device,
        "ids": {name: arm.ids for name, arm in both.arms.items()},
        "rows": sorted({row.status for arm in both.arms for row in both.snapshot().ledgers[arm]}),
        "remarks": [verdict.reason for verdict in both.created.arms[0].verdicts],
        "stopped": [again.status, len(again.arms["A"].ids)],
    }


def seen_of_forks(bench: Bench) -> dict[str, Any]:
    """The same; then a run whose time ends, which the platform does with SIGKILL."""
    seen = seen_of_any(bench)
    until(lambda: len(parameters("/release")) == 3)  # each given back although nobody ended it
    killed = begun(bench)
    os.kill(int(parameters("/allow")[-1]["pid"]), signal.SIGKILL)
    lost = bench.wait(killed, 60)
    return seen | {
        "durations": [int(asked["durationSeconds"]) for asked in parameters("/schedule")],
        "pids": [int(asked["pid"]) for asked in parameters("/allow")],
        "lost": [lost.status, lost.message],
        "fails": [asked["fail"] for asked in parameters("/release")],
    }


def begun(bench: Bench) -> str:
    """A long run that has begun to write."""
    run_id = bench.submit(light({}, max_new_tokens=3000))
    until(lambda: (run := bench.runs.get(run_id)) and run.arms["A"].ids)
    return run_id


def main() -> None:
    """Run them and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.zero_gpu")
    parser.add_argument("where", choices=("cpu", "cuda", "ordinary"), nargs="?", default="cpu")
    where = parser.parse_args().where
    if where == "cpu":
        os.environ["TOKENDYNO_DEVICE"] = "cpu"
    if where != "ordinary":
        stand_in()
    bench = open_bench(executor="zero-gpu")
    bench.start()
    try:
        seen = seen_of_any(bench) if where == "ordinary" else seen_of_forks(bench)
    finally:
        bench.close()
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
