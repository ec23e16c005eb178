"""Carries out the tests of claims on this machine."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from tokendyno.backend import hardware
from tokendyno.backend.claims.results import Result
from tokendyno.backend.claims.samples import doubts, joined, samples
from tokendyno.backend.claims.trials import ClaimTest
from tokendyno.backend.config import Request
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.executors.checkpoint import written
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.snapshot import Snapshot

Asked = Callable[[str], Request]
"""What a test asks of the bench, of a model by this name."""

Follow = Callable[[Run], bool]
"""Returns when the run has ended; True if the user stopped it."""


class NotMeasured(Exception):
    """A test that said nothing: one sentence."""


class Stopped(Exception):
    """The user stopped the run."""


def perform(bench: Bench, test: ClaimTest, asked: Asked, follow: Follow) -> Result:
    """One test. NotMeasured where it fails or takes longer than its limit, InputError where it cannot run here."""
    begin_s = time.monotonic()
    found = list(_runs(bench, test, asked, follow))
    machine = found[0].created.machine
    day = time.strftime("%Y-%m-%d", time.gmtime())
    taken_s = round(time.monotonic() - begin_s, 1)
    measured = joined([samples(one) for one in found])
    doubted = [doubt for one in found for doubt in doubts(one)]
    return Result("claim-test", 2, test.name, test.line, machine, hardware.versions(), day, taken_s, measured, doubted)


def _runs(bench: Bench, test: ClaimTest, asked: Asked, follow: Follow) -> Iterator[Snapshot]:
    """One, or several by new workers, with `loads` from files that are written just before."""
    with written(test.model) if test.loads else contextlib.nullcontext() as folder:
        for _ in range(test.loads or test.starts or 1):
            yield _carried_out(bench, test, asked(str(folder or test.model)), follow)


def _carried_out(bench: Bench, test: ClaimTest, request: Request, follow: Follow) -> Snapshot:
    """One run of it, which ended well."""
    run = bench.runs.get(bench.submit(request, fresh=bool(test.loads or test.starts)))
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
    return run.snapshot()
