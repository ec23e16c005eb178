"""Time from Cancel to the end of a run: `python -m tools.bench.cancel [--model M] [--arms ARM ...] [--times N]`.

Each arm runs in the engine, as from the page, and is cancelled after `--after` tokens. Printed: milliseconds from the
call to the end of the run, and milliseconds per token, since the current step is finished first.
"""

import argparse
import statistics
import time

from backend.arms.parse import parse_arm
from backend.config import ArmRequest, Request, Workload
from backend.engine.bench import Bench
from backend.executors import open_bench

ARMS = ("", "cache=static,loop=own")


def answers(bench: Bench, model: str, arm: str, options: argparse.Namespace) -> tuple[list[float], float]:
    """Seconds of each cancel, and the median time per token."""
    work = Workload(prompt="Once upon a time", max_new_tokens=options.tokens, ignore_eos=True)
    found, token_s = [], []
    for _ in range(options.times):
        run_id = bench.submit(Request(model, [ArmRequest("A", dict(parse_arm(model, arm).choices))], work))
        run = bench.runs.get(run_id)
        assert run is not None
        lane = run.arms["A"]
        while len(lane.t_s) < options.after and not run.ended:
            time.sleep(0.005)
        begin_s = time.perf_counter()
        bench.cancel(run_id)
        while not run.ended:
            time.sleep(0.0005)
        found.append(time.perf_counter() - begin_s)
        assert run.status == "cancelled", run.message
        token_s.append(statistics.median(lane.latency_s[1:]))
    return found, statistics.median(token_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="pocket")
    parser.add_argument("--arms", nargs="*", default=ARMS)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--after", type=int, default=50)
    parser.add_argument("--tokens", type=int, default=1000)
    options = parser.parse_args()
    bench = open_bench(None)
    bench.start()
    try:
        for arm in options.arms:
            found, token_s = answers(bench, options.model, arm, options)
            print(
                f"{arm or 'defaults'}: cancel answered in {1e3 * statistics.median(found):.1f} ms (median), at most "
                f"{1e3 * max(found):.1f} ms, {len(found)} times; a token takes {1e3 * token_s:.1f} ms",
                flush=True,
            )
    finally:
        bench.close()


if __name__ == "__main__":
    main()
