"""Progress on standard error: one line that is replaced on a terminal, one line a step in a file."""

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, TextIO

import msgspec

from tokendyno.backend.cli.terminal import LiveLine, console_of, drawn
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.models.counting import watched
from tokendyno.backend.runs.arm_series import ArmSeries, Phase
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.statistics import mean
from tokendyno.backend.views.phases import PHASE_TITLES, duration, wait_text

BAR = 20
ROOM_FOR_A_BAR = 70
"""Terminals narrower than this get no bar."""

quiet: ContextVar[bool] = ContextVar("quiet", default=False)
"""Nothing is said in this thread: whoever called does not want to read it."""


def _stream() -> TextIO:
    return io.StringIO() if quiet.get() else sys.stderr


def follow(bench: Bench, run: Run) -> bool:
    """Show progress until the run has ended. True if it was stopped with Ctrl-C."""
    stopped = False
    with LiveLine(_stream()) as line:
        while not run.ended:
            try:
                time.sleep(0.1)
                status = _line_of(run)
                line.show(f"stopping | {status}" if stopped else status)
            except KeyboardInterrupt:
                stopped = True
                bench.cancel(run.id)
    return stopped


def shown_until(run: Callable[[], Run], over: Callable[[], bool]) -> None:
    with LiveLine(_stream()) as line:
        while not over():
            time.sleep(0.1)
            line.show(_line_of(run()))


def _line_of(run: Run) -> str:
    if not sys.stderr.isatty():
        return log_line(run)
    console = console_of(sys.stderr)
    bar_signs = "" if console.width < ROOM_FOR_A_BAR else "#-" if console.options.ascii_only else "━─"
    return live_line(run, time.time(), bar_signs)


@contextmanager
def counts_shown() -> Iterator[None]:
    """Within it, standard error tells how long transformers has counted an architecture; a log gets a line a minute."""
    doing = "transformers counts this architecture, without its weights"
    with LiveLine(_stream()) as line:

        def show(spent_s: float | None) -> None:
            if spent_s is None:
                line.wipe()
            elif sys.stderr.isatty() or spent_s >= 60:
                line.show(f"{doing}: {duration(spent_s if sys.stderr.isatty() else spent_s // 60 * 60)}")
            else:
                line.show(f"{doing}: seconds, on a busy machine minutes")

        with watched(show):
            yield


def say(text: str) -> None:
    """A note on standard error, folded to the terminal."""
    if not quiet.get():
        print(drawn([[text]], console_of(sys.stderr)), file=sys.stderr, flush=True)


# --- on a terminal --------------------------------------------------------------------------------


def live_line(run: Run, now_s: float, bar_signs: str = "") -> str:
    """The arm at work with a bar, the others in short: `A done | B run ━━━━── 64/256 tokens, 12 s left`. `bar_signs`:
    for what is done and what is left; "": no bar."""
    parts = []
    for name, arm in run.arms.items():
        phase = next(reversed(list(arm.phases.values())), None)
        if arm.state != "working" or phase is None:
            parts.append(f"{name} {'waiting' if arm.state == 'working' else arm.state}")
        elif phase.state == "end" and phase.name != "run":
            parts.append(f"{name} {PHASE_TITLES[phase.name]} done")
        else:
            parts.append(f"{name} {_at_work(run, arm, phase, now_s, bar_signs)}")
    return " | ".join(parts)


def _at_work(run: Run, arm: ArmSeries, phase: Phase, now_s: float, bar_signs: str) -> str:
    title, steps = PHASE_TITLES[phase.name], _steps(run, arm)
    fraction = steps.fraction if phase.name == "run" else phase.fraction
    spent_s = max(0.0, now_s - run.created.created - phase.begin_s)
    expected_s = arm.expected_s.get(phase.name)
    if fraction is None and expected_s:
        fraction = min(0.99, spent_s / expected_s)
    if phase.name == "run" and steps.done:
        details = [f"{steps.done:,}/{steps.limit:,} {steps.unit}", steps.round, steps.left]
    else:
        details = [duration(spent_s) if spent_s >= 1 else "", wait_text(phase, arm.expected_s)]
    bar = ""
    if bar_signs and fraction is not None:
        filled = round(max(0.0, min(1.0, fraction)) * BAR)
        bar = bar_signs[0] * filled + bar_signs[1] * (BAR - filled)
    return " ".join(filter(None, [title, bar, ", ".join(filter(None, details))]))


class _Steps(NamedTuple):
    """How far a measured run is. `done` of `limit` steps of this repeat; `fraction`: of all repeats; `round` and
    `left`: which repeat it is, and the time that is left of it, in words."""

    done: int
    limit: int
    unit: str
    fraction: float
    round: str
    left: str


def _steps(run: Run, arm: ArmSeries) -> _Steps:
    work, traffic = run.request.workload, run.request.traffic
    if traffic is not None:
        done, limit = arm.batch.done, len(traffic.requests)
        return _Steps(done, limit, "requests", done / limit, "", "")
    limit, unit = work.max_new_tokens, "tokens" if run.unit == "token" else "passes"
    repeat, phase = max(arm.repeats_s, default=0), arm.phases.get("run")
    if repeat in arm.finishes and phase is not None and phase.state != "end":
        repeat += 1  # it has begun, without a token yet
    latencies_s = arm.repeats_s.get(repeat, [])
    done = len(latencies_s)
    step_s = mean(latencies_s[1:]) if run.unit == "token" else mean(latencies_s)
    left = f"{duration((limit - done) * step_s)} left" if step_s and done < limit else ""
    most = f"at most {work.repeats}" if run.request.until_s else f"{work.repeats}"
    round_text = f"run {repeat + 1} of {most}" if work.repeats > 1 else ""
    return _Steps(done, limit, unit, (repeat + done / limit) / work.repeats, round_text, left)


# --- in a file ------------------------------------------------------------------------------------


def log_line(run: Run) -> str:
    """Each arm's phase or token count, such as `A: done | B: run 64/256 tokens`. A log file needs no line for every
    step, so it gets no seconds and only quarters of the tokens."""
    parts = []
    for name, arm in run.arms.items():
        phase = next(reversed(list(arm.phases.values())), None)
        at_work = _logged(run, arm, phase) if phase else "waiting"
        parts.append(f"{name}: {at_work if arm.state == 'working' else arm.state}")
    return " | ".join(parts)


def _logged(run: Run, arm: ArmSeries, phase: Phase) -> str:
    steps, title = _steps(run, arm), PHASE_TITLES[phase.name]
    done = steps.done - steps.done % max(1, steps.limit // 4)
    if phase.name == "run" and done:
        return ", ".join(filter(None, [f"{title} {done:,}/{steps.limit:,} {steps.unit}", steps.round]))
    without_amount = msgspec.structs.replace(phase, amount=None)
    return ", ".join(filter(None, [title, wait_text(without_amount, arm.expected_s)]))
