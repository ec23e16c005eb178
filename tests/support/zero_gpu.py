"""Runs the app's bench as a ZeroGPU Space does, on this CPU: `python -m tests.support.zero_gpu`.

The package `spaces` is the real one: it schedules, forks, queues and releases. What it talks to is a small HTTP server
here, and its module that patches torch, for which a CPU has no CUDA to patch, does nothing. Prints what was seen as
JSON.
"""

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
    """The environment of a ZeroGPU Space, and nothing in place of what patches torch."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Platform)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    cgroup = Path(tempfile.mkdtemp()) / "cgroup"
    cgroup.write_text("0::/space\n")
    os.environ |= {
        "SPACES_ZERO_GPU": "true", "SPACES_ZERO_DEVICE_API_URL": f"http://127.0.0.1:{server.server_port}",
        "ZEROGPU_PROC_SELF_CGROUP_PATH": str(cgroup), "TOKENDYNO_DEVICE": "cpu",
    }  # fmt: skip
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


def main() -> None:
    """Two arms; a run that is stopped; a run whose time ends, which the platform does with SIGKILL."""
    stand_in()
    from backend.executors import open_bench
    from tests.support.worker import light

    bench = open_bench(executor="zero-gpu")
    bench.start()
    try:
        both = bench.wait(bench.submit(light({}, {"cache": "static", "loop": "own"}, max_new_tokens=8)), 120)
        until(lambda: len(parameters("/release")) == 2)  # given back although nobody ended it
        stopped = bench.submit(light({}, max_new_tokens=3000))
        until(lambda: (run := bench.runs.get(stopped)) and run.arms["A"].ids)
        bench.cancel(stopped)
        again = bench.wait(stopped, 60)
        killed = bench.submit(light({}, max_new_tokens=3000))
        until(lambda: (run := bench.runs.get(killed)) and run.arms["A"].ids)
        os.kill(int(parameters("/allow")[-1]["pid"]), signal.SIGKILL)
        lost = bench.wait(killed, 60)
        report = {
            "own": os.getpid(), "status": both.status, "message": both.message,
            "ids": {name: arm.ids for name, arm in both.arms.items()},
            "remarks": [verdict.reason for verdict in both.created.arms[0].verdicts],
            "durations": [int(asked["durationSeconds"]) for asked in parameters("/schedule")],
            "pids": [int(asked["pid"]) for asked in parameters("/allow")],
            "stopped": [again.status, len(again.arms["A"].ids)], "lost": [lost.status, lost.message],
            "fails": [asked["fail"] for asked in parameters("/release")],
        }  # fmt: skip
    finally:
        bench.close()
    print(json.dumps(report))


if __name__ == "__main__":
    main()
