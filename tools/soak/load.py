"""Many viewers and many visitors at once, against a real app.py: how long a pull takes, what the web process grows by,
and whether visitors get their turns.

The app is in mode public. Viewers pull as the page does, by the pace that the server names. Visitors, each with a
cookie and an address of its own (127.0.2.x), submit one run after another. The web process is watched from outside.
"""

import multiprocessing
import os
import random
import statistics
import tempfile
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tools.soak.client import Refused, Visitor
from tools.soak.web import app

PULL_EVERY_S = 0.08
SUBMIT_EVERY_S = 5.0
WARM_S = 60.0
MAX_P95_S = 0.25
MAX_GROWTH_BYTES = 10_000_000
MAX_MORE_FILES = 20


@dataclass(slots=True)
class Seen:
    """What all threads of a process saw. Lists are appended to by many threads and read at the end.

    pulls_s  (when it was asked, on the monotonic clock; how long it took)
    """

    pulls_s: list[tuple[float, float]] = field(default_factory=list)
    submits_s: list[float] = field(default_factory=list)
    done: Counter[int] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, other: "Seen") -> None:
        """What another process saw as well."""
        self.pulls_s += other.pulls_s
        self.submits_s += other.submits_s
        self.done.update(other.done)
        self.refused.update(other.refused)
        self.failures += other.failures


@dataclass(frozen=True)
class Scene:
    """What the clients of all processes share. `watched`: the id of the run that the viewers look at."""

    address: str
    config: Any
    until_s: float
    watched: Any

    @property
    def run_id(self) -> str:
        """The run at work."""
        return bytes(self.watched.value).decode()


@dataclass(frozen=True)
class Crowd:
    """How many. `processes`: in which the clients are, whose threads would wait for each other in one."""

    viewers: int
    visitors: int
    seconds: float
    seed: int = 14
    processes: int = 1


def measure(crowd: Crowd) -> list[str]:
    """Serve them for so long; prints figures, returns what was wrong."""
    os.environ.update(TOKENDYNO_DEADLINE_S="120", HF_HUB_OFFLINE="1")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with app(folder / "history.sqlite", folder / "log", "--mode", "public") as (process, address):
            return _watched(psutil.Process(process.pid), address, crowd)


def _watched(web: psutil.Process, address: str, crowd: Crowd) -> list[str]:
    with closing(Visitor(address)) as first:
        config = first.config
        run_id, message = first.submit(prompt="Once", max_new_tokens=128)
        if not run_id:
            return [f"no run could be started: {message}"]
    context = multiprocessing.get_context("spawn")
    watched: Any = context.Array("c", 64)
    watched.value = run_id.encode()
    begin_s, warm_s = time.monotonic(), min(WARM_S, crowd.seconds / 3)
    scene, clients = Scene(address, config, begin_s + crowd.seconds, watched), []
    for number in range(crowd.processes):
        reader, writer = context.Pipe(duplex=False)
        client = context.Process(target=_clients, args=(number, crowd, scene, writer), daemon=True)
        client.start()
        clients.append((client, reader))
    samples: list[tuple[int, int]] = []  # of the web process: bytes, open files
    while (passed_s := time.monotonic() - begin_s) < crowd.seconds:
        if passed_s >= warm_s:
            samples.append((web.memory_full_info().uss, web.num_fds()))
        time.sleep(1.0)
    seen = Seen()
    for client, reader in clients:
        if not reader.poll(60):
            return ["a process of clients did not end"]
        seen.add(reader.recv())
        client.join(5)
    return _judge(seen, [took_s for at_s, took_s in seen.pulls_s if at_s >= begin_s + warm_s], samples, crowd, warm_s)


def _clients(number: int, crowd: Crowd, scene: Scene, out: Any) -> None:
    """One process of clients: its share of them, each in a thread of its own."""
    seen, rng = Seen(), random.Random(crowd.seed + number)
    threads = [
        threading.Thread(target=_view, args=(n, scene, seen), daemon=True)
        for n in range(number, crowd.viewers, crowd.processes)
    ]
    threads += [
        threading.Thread(target=_submit, args=(n, scene, seen, rng.random()), daemon=True)
        for n in range(number, crowd.visitors, crowd.processes)
    ]
    for thread in threads:
        thread.start()
        time.sleep(0.01)
    time.sleep(max(0.0, scene.until_s - time.monotonic()))
    time.sleep(0.5)  # those that still wait for an answer are not waited for
    out.send(seen)


def _view(number: int, scene: Scene, seen: Seen) -> None:
    """A viewer of whatever run is at work, with a cursor as the page's."""
    source = f"127.0.1.{1 + number % 250}"
    with suppress(OSError, Refused), closing(Visitor(scene.address, scene.config, source)) as visitor:
        run_id, version, cursors = "", -1, [[0, 0, 0]] * 2
        while time.monotonic() < scene.until_s:
            if run_id != scene.run_id:
                run_id, version, cursors = scene.run_id, -1, [[0, 0, 0]] * 2
            begin_s = time.monotonic()
            try:
                reply = visitor.pull(run_id, version, cursors)
            except (OSError, Refused, ValueError) as error:
                seen.failures.append(f"pull: {type(error).__name__}: {error}"[:150])
                time.sleep(1.0)
                continue
            seen.pulls_s.append((begin_s, time.monotonic() - begin_s))
            if "error" not in reply:
                version = reply["version"]
                cursors = [[part["n"], part["sn"], part["cn"]] for part in reply["lanes"]]
            time.sleep(max(PULL_EVERY_S, reply.get("every_ms", 0) / 1000))


def _submit(number: int, scene: Scene, seen: Seen, offset: float) -> None:
    """A visitor who runs, waits for the end, and runs again."""
    time.sleep(offset * SUBMIT_EVERY_S)
    source = f"127.0.2.{1 + number % 250}"
    with suppress(OSError, Refused), closing(Visitor(scene.address, scene.config, source)) as visitor:
        while time.monotonic() < scene.until_s:
            begin_s = time.monotonic()
            try:
                run_id, message = visitor.submit(prompt=f"Once {number}", max_new_tokens=24)
            except (OSError, Refused, ValueError) as error:
                seen.failures.append(f"submit: {type(error).__name__}: {error}"[:150])
                time.sleep(SUBMIT_EVERY_S)
                continue
            seen.submits_s.append(time.monotonic() - begin_s)
            if not run_id:
                seen.refused[message[:60]] += 1
                time.sleep(SUBMIT_EVERY_S)
                continue
            while time.monotonic() < scene.until_s:
                time.sleep(0.5)
                reply = visitor.pull(run_id)
                if reply.get("status") == "running":
                    scene.watched.value = run_id.encode()
                if reply.get("ended"):
                    seen.done[number] += reply["status"] == "done"
                    break


def _judge(seen: Seen, pulls_s: list[float], samples: list[tuple[int, int]], crowd: Crowd, warm_s: float) -> list[str]:
    """Print figures; what was wrong. `samples`: bytes and open files of the web process."""
    seconds = crowd.seconds - warm_s
    if len(pulls_s) < 100 or len(samples) < 2:
        return [f"only {len(pulls_s)} pulls in {seconds:.0f} s: too few to tell", *seen.failures[:5]]
    pulls = sorted(pulls_s)
    p95 = pulls[int(0.95 * len(pulls))]
    rate = len(pulls) / seconds / crowd.viewers
    sizes, files = zip(*samples, strict=True)
    grown = sizes[-1] - sizes[0]
    runs = [seen.done[n] for n in range(crowd.visitors)]
    median, most = statistics.median(pulls), pulls[-1]
    squares = sum(count * count for count in runs)
    fairness = sum(runs) ** 2 / (len(runs) * squares) if squares else 1.0  # Jain's index: 1 where all have the same
    print(
        f"{crowd.viewers} viewers: {len(pulls)} pulls in {seconds:.0f} s, {rate:.2f} a second each: median "
        f"{median * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms, most {most * 1000:.0f} ms\n"
        f"memory of the web process {sizes[0] / 1e6:.0f} MB, grew by {grown / 1e6:.1f} MB; open files {files[0]}, "
        f"at most {max(files)}, {files[-1]} at the end\n"
        f"{crowd.visitors} visitors: {len(seen.submits_s)} runs requested, {sum(runs)} done, {min(runs, default=0)} to "
        f"{max(runs, default=0)} each, fairness {fairness:.2f}; refused {dict(seen.refused.most_common(3))}"
    )
    wrong = [f"{len(seen.failures)} calls failed, first {seen.failures[0]}"] if seen.failures else []
    if p95 > MAX_P95_S:
        wrong.append(f"the p95 of a pull is {p95 * 1000:.0f} ms, more than {MAX_P95_S * 1000:.0f}")
    if grown > MAX_GROWTH_BYTES:
        wrong.append(f"the web process grew by {grown / 1e6:.1f} MB")
    if not sum(runs):
        wrong.append("no visitor's run was done")
    if files[-1] > files[0] + MAX_MORE_FILES:
        wrong.append(f"open files rose from {files[0]} to {files[-1]}")
    return wrong
