"""An exported script beside the run of the same arm: `python -m tools.bench.script_times [--arm ARM ...] [--rounds N]`.

Each in a process of its own, in turns: `tokendyno run`, then the script that `tokendyno export` writes for the same arm
and workload. Printed are the shortest medians of the time per token, because other programs only ever make a process
slower, their ratio, and that of each round: 1 where the script measures as the run does. Exit code 1 if an arm's ratio
of the shortest is further from 1 than --tolerance.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from backend.executors.subprocess import environment
from backend.paths import ROOT

ARMS = (
    ("pocket", "dtype=bfloat16"),
    ("pocket", "dtype=float32"),
    ("pocket", "dtype=float32,cache=static"),
    ("pocket", "dtype=float32,cache=static,loop=own"),
    ("pocket", "dtype=float32,speculation=prompt-lookup"),
    ("pocket", "dtype=float32,cache=static,compile=default"),
)
LIMIT_S = 900
FIGURES = '\nimport json\nprint(json.dumps([globals().get("times_s", [0.0])[0], statistics.median(latencies_s)]))\n'
"""At the end of a script, because it rounds what it prints."""


@dataclass(frozen=True, slots=True)
class Times:
    """Of one process: time to first token (0 for an encoder) and median time per token, in seconds."""

    ttft_s: float
    latency_s: float


def run_times(model: str, arm: str, workload: Sequence[str]) -> Times:
    """Of `tokendyno run`. RuntimeError if it fails."""
    told = _output("-m", "backend", "run", "--model", model, "--arm", arm, *workload, "--json", "-")
    summary = json.loads(told)["arms"][0]["summary"]
    return Times(summary["ttft_s"] or 0.0, summary["latency_median_s"])


def script_times(model: str, arm: str, workload: Sequence[str]) -> Times:
    """Of the script of that arm. RuntimeError if it fails."""
    text = _output("-m", "backend", "export", "--model", model, "--arm", arm, *workload)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "script.py"
        path.write_text(text + FIGURES)
        return Times(*json.loads(_output(str(path)).splitlines()[-1]))


def _output(*arguments: str) -> str:
    """Standard output of a Python process with the variables of a worker, so that both find the same libraries."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=LIMIT_S
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr[-3000:]}")
    return done.stdout


def measure(arms: Sequence[tuple[str, str]], workload: Sequence[str], rounds: int, tolerance: float) -> bool:
    """Print a line per arm, then everything as JSON. Whether each arm is within the tolerance."""
    found, good = [], True
    for model, arm in arms:
        pairs = []
        for number in range(rounds):
            both = [(run_times, "run"), (script_times, "script")]
            one = {name: take(model, arm, workload) for take, name in both[:: -1 if number % 2 else 1]}
            pairs.append((one["run"], one["script"]))
        ratios = [script.latency_s / run.latency_s for run, script in pairs]
        run, script = (min((pair[i] for pair in pairs), key=lambda one: one.latency_s) for i in (0, 1))
        first_run_s, first_script_s = (min(pair[i].ttft_s for pair in pairs) for i in (0, 1))
        ratio = script.latency_s / run.latency_s
        good = good and abs(ratio - 1) <= tolerance
        print(
            f"{model} {arm}: run {1e3 * run.latency_s:.3f} ms, script {1e3 * script.latency_s:.3f} ms a token, ratio "
            f"{ratio:.3f}; rounds {', '.join(f'{one:.3f}' for one in ratios)}, median {statistics.median(ratios):.3f}; "
            f"first token {1e3 * first_run_s:.1f} and {1e3 * first_script_s:.1f} ms",
            flush=True,
        )
        found.append({"model": model, "arm": arm, "pairs": [[asdict(run), asdict(script)] for run, script in pairs]})
    print(json.dumps(found))
    return good


def options(parser: argparse.ArgumentParser, arms: Sequence[tuple[str, str]], rounds: int, new: int) -> int:
    """Measure what the command line says, by default `arms`; the exit code."""
    parser.add_argument("--model", help="of the arms given by --arm (default: pocket)", default="pocket")
    parser.add_argument("--arm", action="append", help="may be repeated (default: a list for every kind of loop)")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--prompt-tokens", type=int, default=64)
    parser.add_argument("--new", type=int, default=new)
    parser.add_argument("--tolerance", type=float, default=0.03)
    given = parser.parse_args()
    wanted = [(given.model, arm) for arm in given.arm] if given.arm else arms
    workload = ["--prompt-tokens", str(given.prompt_tokens), "--max-new-tokens", str(given.new), "--ignore-eos"]
    return 0 if measure(wanted, workload, given.rounds, given.tolerance) else 1


if __name__ == "__main__":
    sys.exit(options(argparse.ArgumentParser(description=__doc__), ARMS, rounds=5, new=160))
