"""Progress on standard error: one line that is replaced on a terminal, one line a phase in a file."""

import sys
import time

import msgspec

from backend.engine.bench import Bench
from backend.runs.arm_series import ArmSeries, Phase
from backend.runs.run import Run
from backend.views.tiles import PHASE_TITLES
from backend.views.waits import wait_text


def follow(bench: Bench, run: Run) -> bool:
    """Show progress until the run has ended. True if it was stopped with Ctrl-C."""
    stopped, last = False, ""
    while not run.ended:
        try:
            time.sleep(0.1)
            line = progress_line(run)
            if line != last:
                say(line, replace=bool(last))
                last = line
        except KeyboardInterrupt:
            stopped = True
            bench.cancel(run.id)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return stopped


def progress_line(run: Run) -> str:
    """Each arm's phase, fraction or token count, such as `A: done | B: run 64/256 tokens`."""
    parts = []
    for name, arm in run.arms.items():
        if arm.state != "working":
            parts.append(f"{name}: {arm.state}")
            continue
        phase = next(reversed(list(arm.phases.values())), None)
        parts.append(f"{name}: {_phase(run, arm, phase) if phase else 'waiting'}")
    return " | ".join(parts)


def _phase(run: Run, arm: ArmSeries, phase: Phase) -> str:
    """A phase with how far it is: tokens, or seconds and what to expect of them. A log file needs no line for every
    step, so it gets no seconds and only quarters of the tokens."""
    generated, limit, traffic = len(arm.t_s), run.request.workload.max_new_tokens, run.request.traffic
    if traffic is not None:
        generated, limit = arm.batch.done, len(traffic.requests)
    terminal, title = sys.stderr.isatty(), PHASE_TITLES[phase.name]
    if not terminal:
        generated -= generated % max(1, limit // 4)
    if generated:
        unit = "requests" if traffic is not None else "tokens" if run.unit == "token" else "passes"
        return f"{title} {generated}/{limit} {unit}"
    if not terminal:
        still = msgspec.structs.replace(phase, amount=None)
        return ", ".join(part for part in (title, wait_text(still, arm.expected_s)) if part)
    spent_s = phase.seconds if phase.state == "end" else time.time() - run.created.created - phase.begin_s
    fraction = f"{phase.fraction:.0%}" if phase.fraction and phase.state != "end" else ""
    told = (f"{title} {max(0.0, spent_s):.0f} s", fraction, wait_text(phase, arm.expected_s))
    return ", ".join(part for part in told if part)


def say(text: str, replace: bool = False) -> None:
    """Print to standard error. On a terminal, `replace` overwrites the progress line before."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}" if replace else text, end="", file=sys.stderr, flush=True)
        if not replace and not text.startswith(("A:", "B:")):
            print(file=sys.stderr)
    else:
        print(text, file=sys.stderr, flush=True)
