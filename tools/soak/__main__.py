"""The fault bench: `python -m tools.soak workers | kills | web | history | hub | load [--help]`.

workers   each fault of a worker in each phase of a run
kills     --times kills of a worker, phases in turn, for at most --minutes
web       --times kills of the web process in the middle of a run
history   a full disk, a lock, damage, a removed file, a clock that jumps, in each phase of a run
load      --viewers of a run and --visitors who submit, for --minutes
hub       a download that is cut off, against a Hub on the loopback interface

Exit code 1 if anything was not as it should be. What is drawn follows --seed.
"""

import argparse
import os
import random
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

PLAIN = ("start", "load", "quantize", "warmup", "run", "prove")


def main() -> int:
    """Parse, run one bench, print what was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", choices=["workers", "kills", "web", "history", "hub", "load"])
    parser.add_argument("--seed", type=int, default=14)
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--phases", default="", help=f"comma-separated; default: {','.join(PLAIN)}, of "
                                                     "history run alone; further: download, compile")  # fmt: skip
    parser.add_argument("--faults", default="", help="comma-separated (workers); default: all")
    parser.add_argument("--viewers", type=int, default=200)
    parser.add_argument("--visitors", type=int, default=50)
    parser.add_argument("--processes", type=int, default=1, help="of clients (load)")
    parser.add_argument("--cores", default="", help="comma-separated: of the app alone (load); default: all, shared")
    options = parser.parse_args()
    load_before = Path("/proc/loadavg").read_text().split()[0]
    begin_s, rng = time.monotonic(), random.Random(options.seed)
    wrong = run(options, rng)
    load_after = Path("/proc/loadavg").read_text().split()[0]
    print(f"{options.bench}: {time.monotonic() - begin_s:.0f} s, seed {options.seed}, {os.cpu_count()} cores, "
          f"load average {load_before} before and {load_after} after")  # fmt: skip
    for sentence in wrong:
        print(f"wrong: {sentence}")
    print("nothing was wrong" if not wrong else f"{len(wrong)} things were wrong")
    return bool(wrong)


def run_workers(options: argparse.Namespace, phases: tuple[str, ...], rng: random.Random) -> list[str]:
    """Faults of workers; returns what was wrong."""
    from tools.soak import workers
    from tools.soak.injections import INJECTIONS

    until_s = time.monotonic() + 60 * options.minutes
    with workers.armed() as site:
        if options.bench == "workers":
            wanted = [fault for fault in INJECTIONS if fault.name in options.faults.split(",")]
            cases = workers.matrix(site, phases, tuple(wanted) or INJECTIONS, until_s, rng)
        else:
            cases = workers.kills(site, phases, options.times, until_s, rng)
        return workers.summary(cases, site) + workers.check_history(site)


def run(options: argparse.Namespace, rng: random.Random) -> list[str]:
    """One bench; returns what was wrong."""
    if options.bench in ("workers", "kills", "history"):
        from tools.soak import hub

        default = ("run",) if options.bench == "history" else PLAIN
        names: Any = tuple(options.phases.split(",")) if options.phases else default
        with hub.loopback() if "download" in names else nullcontext():
            if options.bench != "history":
                return run_workers(options, names, rng)
            from tools.soak import history

            return history.all_faults(names, time.monotonic() + 60 * options.minutes)
    if options.bench == "web":
        from tools.soak import web

        return web.kills(options.times, time.monotonic() + 60 * options.minutes, rng)
    if options.bench == "hub":
        from tools.soak import hub

        return hub.cut_off()
    from tools.soak import load

    cores = tuple(int(core) for core in options.cores.split(",") if core)
    crowd = load.Crowd(
        options.viewers, options.visitors, 60 * options.minutes, options.seed, options.processes, cores
    )  # fmt: skip
    return load.measure(crowd)


if __name__ == "__main__":
    sys.exit(main())
