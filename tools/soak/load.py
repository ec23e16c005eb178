"""Many viewers and many visitors at once, against a real app.py: how long a pull takes, what the web process grows by,
and whether visitors get their turns.

The app is in mode public. Viewers pull as the page does, by the pace that the server names. Visitors, each with a
cookie and an address of its own (127.0.2.x), submit one run after another. The web process is watched from outside.
"""

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
    """What all threads saw. Lists are appended to by many threads and read at the end."""

    pulls_s: list[float] = field(default_factory=list)
    submits_s: list[float] = field(default_factory=list)
    done: Counter[int] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    watched: str = ""


def measure(viewers: int, visitors: int, seconds: float, seed: int) -> list[str]:
    """Serve them for so long; prints figures, returns what was wrong."""
    os.environ.update(TOKENDYNO_DEADLINE_S="120", HF_HUB_OFFLINE="1")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with app(folder / "history.sqlite", folder / "log", "--mode", "public") as (process, address):
            return _watched(psutil.Process(process.pid), address, (viewers, visitors), seconds, random.Random(seed))


def _watched(web: psutil.Process, address: str, many: tuple[int, int], seconds: float, rng: random.Random) -> list[str]:
    seen, ended = Seen(), threading.Event()
    with closing(Visitor(address)) as first:
        config = first.config
        run_id, message = first.submit(prompt="Once", max_new_tokens=128)
        seen.watched = run_id
        if not run_id:
            return [f"no run could be started: {message}"]
    threads = [
        threading.Thread(target=_view, args=(n, address, config, seen, ended), daemon=True) for n in range(many[0])
    ]
    threads += [
        threading.Thread(target=_submit, args=(n, address, config, seen, ended, rng.random()), daemon=True)
        for n in range(many[1])
    ]
    begin_s, warm_s = time.monotonic(), min(WARM_S, seconds / 3)
    for thread in threads:
        thread.start()
        time.sleep(0.01)
    held: list[tuple[float, int, int]] = []  # (seconds, bytes, open files)
    warm_pulls = 0
    while (passed_s := time.monotonic() - begin_s) < seconds:
        if passed_s >= warm_s:
            warm_pulls = warm_pulls or len(seen.pulls_s)
            held.append((passed_s, web.memory_full_info().uss, web.num_fds()))
        time.sleep(1.0)
    ended.set()
    for thread in threads:
        thread.join(0.2)
    return _judge(seen, seen.pulls_s[warm_pulls:], held, many, seconds - warm_s)


def _view(number: int, address: str, config: object, seen: Seen, ended: threading.Event) -> None:
    """A viewer of whatever run is at work, with a cursor as the page's."""
    with suppress(OSError, Refused), closing(Visitor(address, config, f"127.0.1.{1 + number % 250}")) as visitor:
        run_id, version, cursors = "", -1, [[0, 0, 0]] * 2
        while not ended.is_set():
            if run_id != seen.watched:
                run_id, version, cursors = seen.watched, -1, [[0, 0, 0]] * 2
            begin_s = time.monotonic()
            try:
                reply = visitor.pull(run_id, version, cursors)
            except (OSError, Refused, ValueError) as error:
                seen.failures.append(f"pull: {type(error).__name__}: {error}"[:150])
                time.sleep(1.0)
                continue
            seen.pulls_s.append(time.monotonic() - begin_s)
            if "error" not in reply:
                version = reply["version"]
                cursors = [[part["n"], part["sn"], part["cn"]] for part in reply["lanes"]]
            ended.wait(max(PULL_EVERY_S, reply.get("every_ms", 0) / 1000))


def _submit(number: int, address: str, config: object, seen: Seen, ended: threading.Event, offset: float) -> None:
    """A visitor who runs, waits for the end, and runs again."""
    ended.wait(offset * SUBMIT_EVERY_S)
    with suppress(OSError, Refused), closing(Visitor(address, config, f"127.0.2.{1 + number % 250}")) as visitor:
        while not ended.is_set():
            begin_s = time.monotonic()
            try:
                run_id, message = visitor.submit(prompt=f"Once {number}", max_new_tokens=24)
            except (OSError, Refused, ValueError) as error:
                seen.failures.append(f"submit: {type(error).__name__}: {error}"[:150])
                ended.wait(SUBMIT_EVERY_S)
                continue
            seen.submits_s.append(time.monotonic() - begin_s)
            if not run_id:
                seen.refused[message[:60]] += 1
                ended.wait(SUBMIT_EVERY_S)
                continue
            while not ended.wait(0.5):
                reply = visitor.pull(run_id)
                if reply.get("status") == "running":
                    seen.watched = run_id
                if reply.get("ended"):
                    seen.done[number] += reply["status"] == "done"
                    break


def _judge(
    seen: Seen, pulls_s: list[float], held: list[tuple[float, int, int]], many: tuple[int, int], seconds: float
) -> list[str]:
    if len(pulls_s) < 100 or len(held) < 2:
        return [f"only {len(pulls_s)} pulls in {seconds:.0f} s: too few to tell", *seen.failures[:5]]
    pulls = sorted(pulls_s)
    p95 = pulls[int(0.95 * len(pulls))]
    rate = len(pulls) / seconds / many[0]
    grown = held[-1][1] - held[0][1]
    files = [count for _, _, count in held]
    runs = [seen.done[n] for n in range(many[1])]
    median, most = statistics.median(pulls), pulls[-1]
    print(f"{many[0]} viewers: {len(pulls)} pulls in {seconds:.0f} s, {rate:.2f} a second each: median "
          f"{median * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms, most {most * 1000:.0f} ms")  # fmt: skip
    print(f"memory of the web process {held[0][1] / 1e6:.0f} MB, grew by {grown / 1e6:.1f} MB; open files {files[0]}, "
          f"at most {max(files)}, {files[-1]} at the end")  # fmt: skip
    print(f"{many[1]} visitors: {len(seen.submits_s)} runs asked for, {sum(runs)} done, {min(runs, default=0)} to "
          f"{max(runs, default=0)} each, Jain's index of fairness {_jain(runs):.2f}; refused "
          f"{dict(seen.refused.most_common(3))}")  # fmt: skip
    wrong = [f"{len(seen.failures)} calls failed, first {seen.failures[0]}"] if seen.failures else []
    if p95 > MAX_P95_S:
        wrong.append(f"the p95 of a pull is {p95 * 1000:.0f} ms, more than {MAX_P95_S * 1000:.0f}")
    if grown > MAX_GROWTH_BYTES:
        wrong.append(f"the web process grew by {grown / 1e6:.1f} MB")
    if files[-1] > files[0] + MAX_MORE_FILES:
        wrong.append(f"open files rose from {files[0]} to {files[-1]}")
    return wrong


def _jain(shares: list[int]) -> float:
    """Jain's index of fairness: 1 where all have the same, 1/n where one has everything."""
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0
