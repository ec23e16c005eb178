"""What the page stands for an hour: `python -m tools.soak web | load [--help]`.

web    --times kills of the web process in the middle of a run
load   --viewers of a run and --visitors who submit, for --minutes

Exit code 1 if anything was not as it should be. What is drawn follows --seed.
"""

import argparse
import os
import random
import sys
import time

from tools.soak import load, web


def main() -> int:
    """Parse, run one bench, print what was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", choices=["web", "load"])
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--viewers", type=int, default=200)
    parser.add_argument("--visitors", type=int, default=50)
    parser.add_argument("--processes", type=int, default=1, help="of clients (load)")
    options = parser.parse_args()
    load_before, begin_s = os.getloadavg()[0], time.monotonic()
    if options.bench == "web":
        wrong = web.kills(options.times, begin_s + 60 * options.minutes, random.Random(options.seed))
    else:
        sizes = (options.viewers, options.visitors, 60 * options.minutes, options.seed, options.processes)
        wrong = load.measure(load.Crowd(*sizes))
    print(
        f"{options.bench}: {time.monotonic() - begin_s:.0f} s, seed {options.seed}, {os.cpu_count()} cores, "
        f"load average {load_before:.1f} before and {os.getloadavg()[0]:.1f} after"
    )
    for sentence in wrong:
        print(f"wrong: {sentence}")
    print("nothing was wrong" if not wrong else f"{len(wrong)} things were wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
