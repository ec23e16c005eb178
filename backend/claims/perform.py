"""Carries out the tests of claims on this machine."""

import threading
import time
from collections.abc import Callable

from backend import hardware
from backend.claims.results import Result
from backend.claims.samples import doubts, samples
from backend.claims.trials import ClaimTest
from backend.engine.bench import Bench
from backend.runs.run import Run

Follow = Callable[[Run], bool]
"""Returns when the run has ended; True if the user stopped it."""


class NotMeasured(Exception):
    """A test that said nothing: one sentence."""


class Stopped(Exception):
    """The user stopped the run."""


def perform(bench: Bench, test: ClaimTest, follow: Follow) -> Result:
    """One test, from its request to what was measured. NotMeasured where it fails, or takes longer than its limit;
    InputError where it cannot run here."""
    begin_s = time.monotonic()
    run = bench.runs.get(bench.submit(test.request()))
    assert run is not None
    late = threading.Event()

    def end() -> None:
        late.set()
        bench.cancel(run.id)

    clock = threading.Timer(test.limit_s, end)
    clock.daemon = True
    clock.start()
    try:
        stopped = follow(run)
    finally:
        clock.cancel()
    if stopped:
        raise Stopped
    if late.is_set():
        raise NotMeasured(f"{test.name} was ended after {test.limit_s:g} s.")
    if run.status != "done":
        raise NotMeasured(f"{test.name}: {run.message}")
    now = run.snapshot()
    machine = now.created.machine
    day = time.strftime("%Y-%m-%d", time.gmtime())
    taken_s = round(time.monotonic() - begin_s, 1)
    return Result(
        "claim-test", 2, test.name, test.line, machine, hardware.versions(), day, taken_s, samples(now), doubts(now)
    ).signed()
