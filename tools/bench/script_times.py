"""An exported script beside the run of the same arm: `python -m tools.bench.script_times [--arm ARM ...] [--rounds N]`.

Each in a process of its own, in turns: `tokendyno run`, then the script that `tokendyno export --standalone` writes for
the same arm and workload; with --short the few lines that it writes without that option, whose time a token is what a
text takes longer than one of a quarter of its length. Processes of one and the same script differ by several percent
(where its memory happens to lie), so medians over processes are compared: 1 where the script measures as the run does.
Printed beside their ratio are the fastest and slowest process of both. Exit code 1 if an arm's ratio is further from 1
than --tolerance.
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
from typing import Any

from tokendyno.backend.executors.subprocess import environment
from tokendyno.backend.paths import ROOT

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
"""At the end of a standalone script, because it rounds what it prints."""
SHORT_FIGURES = """
import json, statistics, time
def seconds(new):
    begin = time.perf_counter()
    generate(new)
    return time.perf_counter() - begin
seconds({new})
longer = [(seconds({new}) - seconds({quarter})) / ({new} - {quarter}) for _ in range(5)]
print(json.dumps([0.0, statistics.median(longer)]))
"""


@dataclass(frozen=True, slots=True)
class Times:
    """Of one process: time to first token (0 where it is not told) and median time per token, in seconds."""

    ttft_s: float
    latency_s: float


def run_times(model: str, arm: str, workload: Sequence[str]) -> Times:
    """Of `tokendyno run`. RuntimeError if it fails."""
    summary = _run(model, arm, workload)["summary"]
    return Times(summary["ttft_s"] or 0.0, summary["latency_median_s"])


def mean_of_run(model: str, arm: str, workload: Sequence[str]) -> Times:
    """The mean of the second text of that length. A script that times itself has generated one before, too: it matters
    where a GPU plans attention anew for each length of a growing cache. RuntimeError if the run fails."""
    *_, last = _run(model, arm, [*workload, "--repeats", "2"])["repeats"]
    return Times(0.0, statistics.mean(last["latency_s"][1:]))


def _run(model: str, arm: str, workload: Sequence[str]) -> Any:
    told = _output("-m", "tokendyno", "run", "--model", model, "--arm", arm, *workload, "--no-history", "--json", "-")
    return json.loads(told)["arms"][0]


def script_times(script: Path) -> Times:
    """Of a script that `write_script` wrote. RuntimeError if it fails."""
    return Times(*json.loads(_output(str(script)).splitlines()[-1]))


def write_script(script: Path, model: str, arm: str, workload: Sequence[str]) -> None:
    """The script of that arm, which tells its times unrounded too. RuntimeError if the arm is refused."""
    text = _output("-m", "tokendyno", "export", "--standalone", "--model", model, "--arm", arm, *workload)
    script.write_text(text + FIGURES)


def write_short_script(script: Path, model: str, arm: str, workload: Sequence[str], new: int) -> None:
    """The few lines of that arm, with what makes and generates a text of `new` tokens as a function of that number."""
    lines = _output("-m", "tokendyno", "export", "--model", model, "--arm", arm, *workload).splitlines()
    begin = next(n for n, line in enumerate(lines) if line.startswith("cache = ") or " = model.generate(" in line)
    end = max(n for n, line in enumerate(lines) if line.startswith("print("))
    made = [f"    {line.replace(f'max_new_tokens={new}', 'max_new_tokens=new')}" for line in lines[begin:end]]
    figures = SHORT_FIGURES.format(new=new, quarter=new // 4)
    script.write_text("\n".join([*lines[:begin], "def generate(new):", *made, figures]))


def _output(*arguments: str) -> str:
    """Standard output of a Python process with the variables of a worker, so that both find the same libraries."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=LIMIT_S
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr[-3000:]}")
    return done.stdout


def pairs_of(model: str, arm: str, workload: Sequence[str], rounds: int, short: int) -> list[tuple[Times, Times]]:
    """Of the run and of the script, in each round; every other round begins with the script. `short`: new tokens of the
    workload where the short script is meant, else 0."""
    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.py"
        if short:
            write_short_script(script, model, arm, workload, short)
        else:
            write_script(script, model, arm, workload)
        for number in range(rounds):
            last = script_times(script) if number % 2 else None
            run = (mean_of_run if short else run_times)(model, arm, workload)
            pairs.append((run, last or script_times(script)))
    return pairs


def measure(
    arms: Sequence[tuple[str, str]], workload: Sequence[str], rounds: int, tolerance: float, short: int = 0
) -> bool:
    """Print a line per arm, then everything as JSON. Whether each arm is within the tolerance."""
    found, good = [], True
    for model, arm in arms:
        pairs = pairs_of(model, arm, workload, rounds, short)
        run_s, script_s = ([pair[i].latency_s for pair in pairs] for i in (0, 1))
        first_run_s, first_script_s = (statistics.median(pair[i].ttft_s for pair in pairs) for i in (0, 1))
        ratio = statistics.median(script_s) / statistics.median(run_s)
        good = good and abs(ratio - 1) <= tolerance
        print(
            f"{model} {arm}, medians of {rounds} processes: run {_spread(run_s)}, script {_spread(script_s)} ms a "
            f"token, ratio {ratio:.3f}; first token {1e3 * first_run_s:.1f} and {1e3 * first_script_s:.1f} ms",
            flush=True,
        )
        found.append({"model": model, "arm": arm, "pairs": [[asdict(run), asdict(script)] for run, script in pairs]})
    print(json.dumps(found))
    return good


def _spread(times_s: Sequence[float]) -> str:
    """Median of processes, with the fastest and the slowest, in ms."""
    median, low, high = (1e3 * of(times_s) for of in (statistics.median, min, max))
    return f"{median:.3f} ({low:.3f} to {high:.3f})"


def main() -> int:
    """Measure what the command line says; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", help="of the arms given by --arm (default: pocket)", default="pocket")
    parser.add_argument("--arm", action="append", help="may be repeated (default: a list for every kind of loop)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--prompt-tokens", type=int, default=64)
    parser.add_argument("--new", type=int, default=160)
    parser.add_argument("--short", action="store_true", help="the script of a few lines")
    parser.add_argument("--tolerance", type=float, default=0.03)
    given = parser.parse_args()
    wanted = [(given.model, arm) for arm in given.arm] if given.arm else ARMS
    workload = ["--prompt-tokens", str(given.prompt_tokens), "--max-new-tokens", str(given.new), "--ignore-eos"]
    short = given.new if given.short else 0
    return 0 if measure(wanted, workload, given.rounds, given.tolerance, short) else 1


if __name__ == "__main__":
    sys.exit(main())
