"""Progress on standard error: one line that is replaced on a terminal, one line a phase in a file."""

import sys
import time

from backend.engine.bench import Bench
from backend.runs.run import Run
from backend.views.tiles import PHASE_TITLES


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
        generated, limit = len(arm.t_s), run.request.workload.max_new_tokens
        traffic = run.request.traffic
        if traffic is not None:
            generated, limit = arm.batch.done, len(traffic.requests)
        if not sys.stderr.isatty():
            generated -= generated % max(1, limit // 4)  # a log file needs no line for every step
        unit = "requests" if traffic is not None else "tokens" if run.unit == "token" else "passes"
        tokens = f" {generated}/{limit} {unit}" if generated else ""
        fraction = f" {phase.fraction:.0%}" if phase and phase.fraction and not tokens else ""
        parts.append(f"{name}: {PHASE_TITLES[phase.name] if phase else 'waiting'}{fraction}{tokens}")
    return " | ".join(parts)


def say(text: str, replace: bool = False) -> None:
    """Print to standard error. On a terminal, `replace` overwrites the progress line before."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}" if replace else text, end="", file=sys.stderr, flush=True)
        if not replace and not text.startswith(("A:", "B:")):
            print(file=sys.stderr)
    else:
        print(text, file=sys.stderr, flush=True)
