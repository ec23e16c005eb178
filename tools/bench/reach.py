"""From the command to the first word and to the verdict, beside another commit:
`python -m tools.bench.reach --against COMMIT [--model MODEL] [--a ARM] [--b ARM] [--repeats 5] [--rounds 5]`.

Both commits run in turns on this machine, COMMIT from a git worktree and each with a cache of its own, which an
unmeasured round fills. Printed are medians with the fastest and the slowest: seconds from the start of `tokendyno run`
until the first token of arm A exists, and of `tokendyno compare` until it ends; and the median of each pair's ratio,
below 1 where this working tree is faster. CPU seconds are those of all processes: a busy machine changes them less.
"""

import argparse
import contextlib
import ctypes
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tokendyno.backend.paths import ROOT

PR_SET_CHILD_SUBREAPER = 36  # man 2 prctl


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of a command until what is waited for, and of all its processes on a CPU until its end."""

    seconds: float
    cpu_s: float


def take(tree: Path, cache: Path, arguments: Sequence[str], first_word: bool) -> Took:
    """Run `tokendyno ARGUMENTS` of that tree. RuntimeError with its last words if it fails."""
    document = cache / "document.json"
    command = [sys.executable, "-m", "tokendyno", *arguments, "--no-history", "--json", str(document)]
    env = os.environ | {"PYTHONPATH": str(tree), "TOKENDYNO_CACHE": str(cache)}
    before, begin_s, word_s, said = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter(), 0.0, ""
    quiet, heard = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(command, cwd=tree, env=env, stdout=quiet, stderr=heard, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            said = line.strip() or said
            if not word_s and line.startswith("A: run"):
                word_s = time.perf_counter() - begin_s
    took_s = time.perf_counter() - begin_s
    with contextlib.suppress(ChildProcessError):  # what the command killed, whose parent this process is now
        while True:
            os.wait()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command[1:])} in {tree} ended with code {process.returncode}: {said}")
    if first_word:  # the measured run had just begun
        took_s = word_s + json.loads(document.read_text())["arms"][0]["summary"]["ttft_s"]
    return Took(took_s, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", required=True, metavar="COMMIT")
    parser.add_argument("--model", default="pocket")
    parser.add_argument("--a", default="", metavar="ARM")
    parser.add_argument("--b", default="cache=static,loop=own", metavar="ARM")
    parser.add_argument("--repeats", default="5")
    parser.add_argument("--max-new-tokens", default="100")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    work = ["--model", options.model, "--max-new-tokens", options.max_new_tokens]
    compare = ["compare", *work, "--a", options.a, "--b", options.b, "--repeats", options.repeats]
    measures = {"first word": (["run", *work, "--arm", options.a], True), "verdict": (compare, False)}
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder, "commit")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(other), options.against], check=True)
        try:
            trees = {"this": ROOT, options.against: other}
            for cache in trees:
                Path(folder, f"cache-{cache}").mkdir()
            for name, (arguments, first_word) in measures.items():
                found: dict[str, list[Took]] = {tree: [] for tree in trees}
                for round_ in range(-1, options.rounds):
                    for tree in list(trees)[:: 1 if round_ % 2 else -1]:  # neither always goes first
                        took = take(trees[tree], Path(folder, f"cache-{tree}"), arguments, first_word)
                        if round_ >= 0:
                            found[tree].append(took)
                for tree, every in found.items():
                    seconds = sorted(one.seconds for one in every)
                    print(
                        f"{name}, {tree}: {statistics.median(seconds):.2f} s ({seconds[0]:.2f} to {seconds[-1]:.2f}), "
                        f"{statistics.median(one.cpu_s for one in every):.2f} s of CPU"
                    )
                pairs = list(zip(*found.values(), strict=True))
                ratios = statistics.median(new.seconds / old.seconds for new, old in pairs)
                cpu = statistics.median(new.cpu_s / old.cpu_s for new, old in pairs)
                print(f"{name}: {ratios:.3f} of {options.against}'s seconds, {cpu:.3f} of its CPU's", flush=True)
        finally:
            subprocess.run([*git, "remove", "--force", str(other)], check=True)


if __name__ == "__main__":
    main()
