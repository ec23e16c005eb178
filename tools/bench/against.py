"""A command of this tree against that of another revision, in pairs:
`python -m tools.bench.against HEAD~20 --times 9 -- run --max-new-tokens 1 --no-proof`

Prints the median of each and of the ratios, each with its quartiles.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tokendyno.backend.paths import ROOT


def _took_s(tree: Path, command: list[str]) -> float:
    begin_s = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "tokendyno", *command, "--no-history"], cwd=tree, check=True, capture_output=True
    )
    return time.perf_counter() - begin_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision")
    parser.add_argument("--times", type=int, default=9)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "-q", str(ROOT), folder], check=True)
        subprocess.run(["git", "checkout", "-q", options.revision], cwd=folder, check=True)
        pairs = []
        for number in range(options.times + 1):  # the first warms the page cache and what is compiled
            trees = [ROOT, Path(folder)][:: -1 if number % 2 else 1]
            took = {tree: _took_s(tree, options.command) for tree in trees}
            pairs.append((took[ROOT], took[Path(folder)]))
    here, there = zip(*pairs[1:], strict=True)
    for name, values in (("here", here), (options.revision, there), ("here / there", [a / b for a, b in pairs[1:]])):
        low, middle, high = statistics.quantiles(values, n=4)
        print(f"{name}: {middle:.3f} ({low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main()
