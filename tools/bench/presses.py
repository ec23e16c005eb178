"""How often is A against A called faster or slower? `python -m tools.bench.presses --presses 50`.

Real presses of Run on this machine, on an engine that keeps its workers: two arms of the embedded model that differ in
how they are loaded and in nothing that runs. At most 1 in 20 may be decided for one of them.
"""

import argparse
import json
import sys
from collections import Counter

from tokendyno.backend import hardware
from tokendyno.backend.config import MOST_PAIRS, ArmRequest, Request, Workload
from tokendyno.backend.executors import open_bench


def main() -> int:
    """Prints one line a press, and the counts as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.presses", description="A against A, again and again.")
    parser.add_argument("--presses", type=int, default=50, metavar="N")
    parser.add_argument("--new", type=int, default=128, metavar="N", help="tokens of a run")
    parser.add_argument("--seconds", type=float, default=60.0, metavar="S", help="of pairs, at most")
    parser.add_argument("--arm", default="loop=own,cache=static", help="what both arms have")
    options = parser.parse_args()
    choices = dict(part.split("=", 1) for part in options.arm.split(","))
    arms = [ArmRequest("A", choices), ArmRequest("B", choices | {"loading": "plain"})]
    work = Workload("Once upon a time", max_new_tokens=options.new, repeats=MOST_PAIRS, ignore_eos=True)
    bench, outcomes, pairs = open_bench(), Counter[str](), 0
    bench.start()
    try:
        for number in range(options.presses):
            run = bench.wait(bench.submit(Request("pocket", arms, work, proof=False, until_s=options.seconds)))
            comparison = run.snapshot().comparison
            if comparison is None:
                print(run.message, file=sys.stderr)
                return 1
            outcome, low, high = comparison.outcome, comparison.low, comparison.high
            outcomes[outcome] += 1
            pairs += comparison.pairs
            ends = f"{low:.3f} to {high:.3f}" if low and high else ""
            print(f"{number + 1:3} {outcome:14} {comparison.ratio:.3f} {ends} {comparison.pairs} pairs", flush=True)
    finally:
        bench.close()
    wrong = outcomes["a_faster"] + outcomes["b_faster"]
    print(json.dumps({"presses": options.presses, "decided": wrong, "pairs": pairs, "said": outcomes}))
    print(hardware.detect().describe())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
