"""What watching continuous batching costs: the seconds that the watch itself takes of a run of many requests.

    python -m tools.bench.watched_batches [--requests 24] [--concurrent 4] [--page-size 16]

Serves drawn requests on the embedded model, with every method of the watch and of the log timed, and prints their share
of the run. Sending happens in another thread; on CPython it takes its time from the run too, and is timed as well.
"""

import argparse
import functools
import time
from typing import Any

import msgspec

from backend import hardware
from backend.arms.check import check
from backend.arms.parse import make_config
from backend.config import workload_of
from backend.messages import Generate
from backend.models import resolve
from backend.traffic.draw import Draw
from backend.traffic.presets import drawn
from backend.worker.channel import QueueChannel
from backend.worker.load.loader import load
from backend.worker.measure.steps import StepLog, StepStreamer
from backend.worker.runners.choice import runner_for
from backend.worker.runners.paged_watch import PagedWatch

OUTERMOST = {
    PagedWatch: ("begin", "prepared", "_note_step", "_note_layers", "finish"),
    StepLog: ("arrived",),
    StepStreamer: ("_flush",),
}


class Spent:
    """CPU seconds of the thread that calls, summed over the timed methods."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        for owner, names in OUTERMOST.items():
            for name in names:
                setattr(owner, name, self._timed(f"{owner.__name__}.{name}", getattr(owner, name)))

    def _timed(self, label: str, plain: Any) -> Any:
        @functools.wraps(plain)
        def timed(*args: Any, **kwargs: Any) -> Any:
            begin_s = time.thread_time()
            try:
                return plain(*args, **kwargs)
            finally:
                self.seconds[label] = self.seconds.get(label, 0.0) + time.thread_time() - begin_s

        return timed


def main() -> None:
    """Run once and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=24)
    parser.add_argument("--concurrent", type=int, default=4)
    parser.add_argument("--page-size", default="16")
    given = parser.parse_args()
    traffic = drawn(Draw(given.requests, (8, 64), (8, 64)), 1, given.concurrent)
    work, facts = workload_of(traffic, ignore_eos=True), resolve("pocket")
    choices = {"dtype": "float32", "batching": "continuous", "page_size": given.page_size}
    plan = check(make_config("pocket", choices), facts, hardware.detect(), work, 0, traffic).plan
    events: list[Any] = []
    channel = QueueChannel(events.append)
    runner = runner_for(load(plan.load, channel), plan, channel, many=True)
    job = Generate(
        plan, "", work.prompt_tokens, work.max_new_tokens, work.batch_size, 0.0, 0, True, True, prove=False,
        traffic=traffic,
    )  # fmt: skip
    runner.run(job)
    spent = Spent()
    cpu_s = time.process_time()
    runner.run(msgspec.structs.replace(job, warmup=False))
    cpu_s = time.process_time() - cpu_s
    finished = events[-1]
    total_s = sum(spent.seconds.values())
    print(f"{traffic.label}, {given.concurrent} at once")
    for label, seconds in sorted(spent.seconds.items(), key=lambda one: -one[1]):
        print(f"{label:<32} {1e3 * seconds:8.2f} ms")
    steps = f"{finished.extra.batch_steps:.0f} steps"
    print(f"{total_s / cpu_s:.2%} of {cpu_s:.2f} CPU seconds; {finished.wall_s:.2f} s, {steps}")


if __name__ == "__main__":
    main()
