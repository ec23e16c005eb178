"""Faults of a worker in each phase of a run: each costs that run alone, is named, and leaves nothing behind."""

import collections
import itertools
import os
import random
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from backend.config import Request
from backend.engine.exchange import PHASES
from backend.errors import InputError
from backend.messages import Progress, Tokens
from backend.runs.records import ArmEvent, Record
from tests.support.processes import gone, group
from tests.support.worker import light
from tools.soak.hub import REPOS
from tools.soak.injections import INJECTIONS, Injection, arm
from tools.soak.site import Site, serving

STRIKES_WITHIN_S = {"start": 1.0, "download": 3.0, "compile": 6.0}
"""Phases that last: the fault comes at any moment of their beginning, in the others at their first."""

ORPHAN_LIMIT_S = 2.0
HANG_DEADLINE_S, DEADLINE_S = "2", "240"
"""Seconds without progress: where the fault is that nothing happens any more, and otherwise. Without memory a process
may be stuck as well."""

WHOLE_RUN_S = 300.0


_numbers = itertools.count()


class Case(NamedTuple):
    """One fault. `phase`: in which it was done; `told`: the phase that the run's message names; `wrong`: what is not as
    it should be, "" if nothing is; `cleared_s`: until its processes were gone."""

    injection: str
    phase: str
    told: str
    status: str
    wrong: str
    cleared_s: float


def request_for(phase: str) -> Request:
    """A small run that goes through a phase, from a new worker."""
    choices: Mapping[str, str] = {
        "quantize": {"quantization": "quanto-int8"},
        "compile": {"cache": "static", "compile": "default", "compile_cache": "fresh"},
    }.get(phase, {})
    model = f"{REPOS}{next(_numbers)}" if phase == "download" else "pocket"
    return light(choices, model=model, max_new_tokens=400 if phase == "run" else 24)


def inject(site: Site, injection: Injection, phase: str, rng: random.Random) -> Case:
    """Carry out a run, do it in this phase, and see what becomes of the run."""
    bench, done_at, pids = site.bench, list[float](), list[int]()
    for slot in list(bench.pool.slots):  # its worker may hold the model, and would skip phases
        bench.pool.drop(slot)
    if phase == "start":
        for spare in [spare for spare in bench.pool.spares if spare.ready]:
            spare.executor.end()  # it has started: there would be nothing to be killed in
    delay_s = rng.random() * STRIKES_WITHIN_S.get(phase, 0.0)

    def strike() -> None:
        if pids:
            return
        pids.append(bench.pool.slots["A"].executor.pids[0])
        if injection.hangs:
            os.environ["TOKENDYNO_DEADLINE_S"] = HANG_DEADLINE_S
        injection.act(pids[0])
        done_at.append(time.monotonic())

    def watch(run_id: str, record: Record) -> None:
        match record:
            case ArmEvent(event=Progress(phase=begun, state="begin")) if begun == phase and not pids:
                if injection.hangs or phase not in (*STRIKES_WITHIN_S, "run"):
                    strike()  # a phase may be shorter than a timer is exact
                elif phase in STRIKES_WITHIN_S:
                    threading.Timer(delay_s, strike).start()
            case ArmEvent(event=Tokens()) if phase == "run" and rng.random() < 0.5:
                strike()
            case _:
                pass

    site.watch = watch
    try:
        site.run_id = _submitted(site, phase)
        run = bench.wait(site.run_id, WHOLE_RUN_S)
    finally:
        site.watch = lambda run_id, record: None
        os.environ["TOKENDYNO_DEADLINE_S"] = DEADLINE_S
        if pids:
            injection.undo()
    ended_s = time.monotonic()
    if not pids:
        return Case(injection.name, phase, "", run.status, "the phase was never reached", 0.0)
    while (left := [pid for pid in group(pids[0]) if not gone(pid)]) and time.monotonic() < ended_s + ORPHAN_LIMIT_S:
        if run.status == "done":  # the fault was not met: the worker lives on, as it should
            break
        time.sleep(0.01)
    cleared_s = time.monotonic() - done_at[0]
    told = next((name for name, words in PHASES.items() if f"during {words}" in run.message), "")
    wrong = ""
    if run.status == "done":
        wrong = "" if injection.may_pass else "the run ended well"
    elif run.status != "failed" or not any(word in run.message for word in injection.told):
        wrong = f"{run.status}: {run.message}"
    elif left:
        wrong = f"{len(left)} processes left"
    if run.status == "done":
        bench.pool.drop("A")
    elif injection.again and not wrong:
        again = bench.wait(_submitted(site, phase), WHOLE_RUN_S)
        wrong = "" if again.status == "done" else f"the same run after it: {again.message}"
    return Case(injection.name, phase, told, run.status, wrong, cleared_s)


def _submitted(site: Site, phase: str) -> str:
    """Queue the run; waits while others leave no memory for it."""
    until_s = time.monotonic() + 300
    while True:
        try:
            return site.bench.submit(request_for(phase))
        except InputError as error:
            if time.monotonic() > until_s:
                raise
            print(f"refused for now: {str(error)[:100]}", flush=True)
            time.sleep(5)


def matrix(
    site: Site, phases: tuple[str, ...], injections: tuple[Injection, ...], until_s: float, rng: random.Random
) -> list[Case]:
    """Every fault in every phase in which it can happen. Stops at `until_s`."""
    every = [(fault, phase) for phase in phases for fault in injections if phase in (fault.phases or phases)]
    found = [said(inject(site, fault, phase, rng)) for fault, phase in every if time.monotonic() < until_s]
    if len(found) < len(every):
        print(f"time is up: {len(every) - len(found)} of {len(every)} faults were not tried", flush=True)
    return found


def kills(site: Site, phases: tuple[str, ...], times: int, until_s: float, rng: random.Random) -> list[Case]:
    """That many kills, phases in turn; one run in twenty is left to its end, and must be whole. Stops at `until_s`."""
    killed = INJECTIONS[0]
    found = []
    for number in range(times):
        if time.monotonic() > until_s:
            break
        found.append(inject(site, killed, phases[number % len(phases)], rng))
        if found[-1].wrong:
            said(found[-1])
        if number % 50 == 49:
            print(f"{number + 1} kills so far", flush=True)
        if number % 20 == 19:
            site.run_id = _submitted(site, "")
            run = site.bench.wait(site.run_id, WHOLE_RUN_S)
            whole = run.status == "done" and len(run.arms["A"].ids) == 24
            if not whole:
                found.append(said(Case("none", "", "", run.status, f"an untouched run: {run.message}", 0.0)))
    return found


def said(case: Case) -> Case:
    """Print a case."""
    print(f"{case.injection:<24} {case.phase:<9} -> {case.status:<8} named {case.told or '-':<9} "
          f"cleared in {case.cleared_s:4.2f} s  {case.wrong}", flush=True)  # fmt: skip
    return case


def check_history(site: Site) -> list[str]:
    """Whether every run of this session is in the file once, with the end that it had."""
    wrong = []
    site.bench.store.flush()
    for run_id, run in list(site.bench.runs._runs.items()):
        if run.created.origin != "here":  # a recording of the stories, which is in no history
            continue
        stored = site.bench.store.read(run_id)
        again = len([1 for record in stored if getattr(record, "status", "") == run.status])
        if again != 1 or stored[0] != run.created:
            wrong.append(f"run {run_id} is not in the history as it was: {len(stored)} records, {again} ends")
    return wrong + [message for message in [site.bench.store.trouble] if message]


def summary(cases: list[Case], site: Site) -> list[str]:
    """Print what was seen; returns what was wrong."""
    by_phase = collections.Counter(case.phase for case in cases if case.injection == "killed" and case.told)
    cleared = [case.cleared_s for case in cases if case.status == "failed"]
    asked, failed = site.answers.seconds, site.answers.failures
    print(f"{len(cases)} faults; kills by phase: {dict(by_phase)}")
    if cleared:
        print(f"processes gone after the fault: median {statistics.median(cleared):.2f} s, most {max(cleared):.2f} s")
    if asked:
        worst = sorted(asked)[int(0.99 * (len(asked) - 1))]
        print(f"{len(asked)} visits of the page meanwhile: {len(failed)} failed, "
              f"median {statistics.median(asked) * 1000:.0f} ms, p99 {worst * 1000:.0f} ms, "
              f"most {max(asked) * 1000:.0f} ms")  # fmt: skip
    return [f"{case.injection} in {case.phase}: {case.wrong}" for case in cases if case.wrong] + failed


@contextmanager
def armed(folder: Path | None = None, spares: int = 2, history: Path | None = None) -> Iterator[Site]:
    """The app with a new history, and workers that can be broken from inside."""
    with tempfile.TemporaryDirectory() as own:
        root = folder or Path(own)
        arm(root)
        os.environ.update(TOKENDYNO_CACHE=str(root / "cache"), TOKENDYNO_DEADLINE_S=DEADLINE_S)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with serving(history or root / "history.sqlite", spares) as site:
            yield site
