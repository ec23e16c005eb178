"""An exported script beside the run of the same arm: `python -m tools.bench.script_times [--arm ARM ...] [--rounds N]`.

Each in a process of its own, in turns: `tokendyno run`, then the script that `tokendyno export --standalone` writes for
the same arm and workload; with --short the few lines that it writes without that option, whose time a token is what a
text takes longer than one of a quarter of its length. Processes of one and the same script differ by several percent
(where its memory happens to lie), so medians over processes are compared: 1 where the script measures as the run does.
Printed beside their ratio are the fastest and slowest process of both. Exit code 1 if an arm's ratio is further from 1
than --tolerance.

Where the host binds, processes differ by up to 45%, and medians of nine say nothing. With --one-process the few lines
of a script that is transformers' own calls, and runs by a worker in the same process, take turns in one.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

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

ONE_PROCESS = """
from tokendyno.backend.arms.bundles import written_arm
from tokendyno.backend.config import Request, Workload
from tokendyno.backend.executors import open_bench
from tokendyno.backend.models import resolve
work = Workload(prompt_tokens={prompt}, max_new_tokens={new}, ignore_eos=True)
arm = written_arm("A", {arm!r}, {model!r}, work, lambda: resolve({model!r}, None))
bench = open_bench(executor="in-process")
bench.start()
def run_s():
    run = bench.runs.get(bench.submit(Request({model!r}, [arm], work)))
    while not run.ended:
        time.sleep(0.1)
    assert run.status == "done", run.message
    return statistics.mean(run.arms["A"].latency_s[1:])
def script_s():
    return (seconds({new}) - seconds({quarter})) / ({new} - {quarter})
run_s(), script_s()
pairs = [(run_s(), script_s()) if number % 2 else (script_s(), run_s())[::-1] for number in range({rounds})]
bench.close()
print(json.dumps(pairs))
"""


Times = tuple[float, float]
"""Of one process: time to first token (0 where it is not told) and time per token, in seconds."""


def run_times(model: str, arm: str, workload: Sequence[str], short: int) -> Times:
    """Of `tokendyno run`: the median of a token, beside a short script the mean of the second text of that length. A
    script that times itself has generated one before, too: it matters where a GPU plans attention anew for each length
    of a growing cache. RuntimeError if it fails."""
    options = [*workload, *(["--repeats", "2"] if short else []), "--no-history", "--json", "-"]
    document = json.loads(_output("-m", "tokendyno", "run", "--model", model, "--arm", arm, *options))["arms"][0]
    if short:
        return 0.0, statistics.mean(document["repeats"][-1]["latency_s"][1:])
    return document["summary"]["ttft_s"] or 0.0, document["summary"]["latency_median_s"]


def write_script(script: Path, model: str, arm: str, workload: Sequence[str], short: int) -> None:
    """The script of that arm, which tells its times unrounded too; the few lines of it with what makes and generates a
    text of `short` tokens as a function of that number. RuntimeError if the arm is refused."""
    kind = [] if short else ["--standalone"]
    text = _output("-m", "tokendyno", "export", *kind, "--model", model, "--arm", arm, *workload)
    if not short:
        script.write_text(text + FIGURES)
        return
    lines = text.splitlines()
    begin = next(n for n, line in enumerate(lines) if line.startswith("cache = ") or "model.generate" in line)
    end = max(n for n, line in enumerate(lines) if line.startswith("print("))
    body = [f"    {line.replace(f'max_new_tokens={short}', 'max_new_tokens=new')}" for line in lines[begin:end]]
    figures = SHORT_FIGURES.format(new=short, quarter=short // 4)
    script.write_text("\n".join([*lines[:begin], "def generate(new):", *body, figures]))


def _output(*arguments: str) -> str:
    """Standard output of a Python process with the variables of a worker, so that both find the same libraries."""
    ended = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=LIMIT_S
    )
    if ended.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {ended.stderr[-3000:]}")
    return ended.stdout


def pairs_of(model: str, arm: str, workload: Sequence[str], rounds: int, short: int) -> list[tuple[Times, Times]]:
    """Of the run and of the script, in each round; every other round begins with the script. `short`: new tokens of the
    workload where the short script is meant, else 0."""
    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.py"
        write_script(script, model, arm, workload, short)
        for number in range(rounds):
            last = _script_times(script) if number % 2 else None
            run = run_times(model, arm, workload, short)
            pairs.append((run, last or _script_times(script)))
            print(
                f"pair {number + 1}: run, script {', '.join(f'{1e3 * times[1]:.3f}' for times in pairs[-1])} ms",
                flush=True,
            )
    return pairs


def pairs_in_one_process(
    model: str, arm: str, workload: Sequence[str], rounds: int, prompt: int, new: int
) -> list[tuple[Times, Times]]:
    """As `pairs_of`, all in one process. RuntimeError for a script that is more than transformers' own calls."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.py"
        write_script(script, model, arm, workload, new)
        text = script.read_text()
        if "import tokendyno" in text:
            raise RuntimeError(f"{arm}: its script loads a worker of its own, so that one process has no room for two.")
        begin = text.index("\nseconds(")
        numbers = {"prompt": prompt, "new": new, "quarter": new // 4, "rounds": rounds}
        script.write_text(text[:begin] + ONE_PROCESS.format(model=model, arm=arm, **numbers))
        times = json.loads(_output(str(script)).splitlines()[-1])
    return [((0.0, run_s), (0.0, script_s)) for run_s, script_s in times]


def _script_times(script: Path) -> Times:
    first_s, token_s = json.loads(_output(str(script)).splitlines()[-1])
    return first_s, token_s


def measure(
    arms: Sequence[tuple[str, str]], workload: Sequence[str], rounds: int, short: int, one_process: int = 0
) -> float:
    """Print a line per arm, then everything as JSON; returns how far the furthest ratio is from 1. `one_process`: with
    a prompt of so many tokens, or 0."""
    rows, furthest = [], 0.0
    for model, arm in arms:
        if one_process:
            pairs = pairs_in_one_process(model, arm, workload, rounds, one_process, short)
        else:
            pairs = pairs_of(model, arm, workload, rounds, short)
        run_s, script_s = ([pair[i][1] for pair in pairs] for i in (0, 1))
        first_run_s, first_script_s = (statistics.median(pair[i][0] for pair in pairs) for i in (0, 1))
        ratio = statistics.median(script_s) / statistics.median(run_s)
        furthest = max(furthest, abs(ratio - 1))
        print(
            f"{model} {arm}, medians of {rounds} pairs: run {_spread(run_s)}, script {_spread(script_s)} ms a "
            f"token, ratio {ratio:.3f}; first token {1e3 * first_run_s:.1f} and {1e3 * first_script_s:.1f} ms",
            flush=True,
        )
        rows.append({"model": model, "arm": arm, "pairs": pairs})
    print(json.dumps(rows))
    return furthest


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
    parser.add_argument("--one-process", action="store_true", help="with --short, both in one process")
    parser.add_argument("--tolerance", type=float, default=0.03)
    options = parser.parse_args()
    arms = [(options.model, arm) for arm in options.arm] if options.arm else ARMS
    workload = ["--prompt-tokens", str(options.prompt_tokens), "--max-new-tokens", str(options.new), "--ignore-eos"]
    short = options.new if options.short or options.one_process else 0
    together = options.prompt_tokens if options.one_process else 0
    return int(measure(arms, workload, options.rounds, short, together) > options.tolerance)


if __name__ == "__main__":
    sys.exit(main())
