"""How often an arm is found to differ from itself: at 95% confidence about one comparison in twenty is expected.

`python -m tools.bench.same --times 20 --model pocket --arm cache=dynamic --tokens 64 --repeats 5`
"""

import argparse
from collections import Counter

from backend.arms.parse import parse_arm
from backend.config import ArmRequest, Request, Workload
from backend.executors import open_bench
from backend.views.sentences import interference_of


def main() -> None:
    """Compare an arm with itself, in the same two workers each time, and count the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--model", default="pocket")
    parser.add_argument("--arm", default="")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    choices = dict(parse_arm(options.model, options.arm).choices)
    work = Workload(prompt_tokens=32, max_new_tokens=options.tokens, repeats=options.repeats, ignore_eos=True)
    request = Request(options.model, [ArmRequest(name, choices) for name in "AB"], work)
    bench = open_bench()
    bench.start()
    verdicts: Counter[str] = Counter()
    try:
        for number in range(options.times):
            run = bench.wait(bench.submit(request))
            now = run.snapshot()
            found = now.comparison()
            assert run.status == "done" and found is not None and found.low is not None and found.high is not None, (
                run.message
            )
            verdicts[found.outcome] += 1
            spoiled = sum(bool(interference_of(now, name, now.summary(name))) for name in now.arms)
            print(
                f"{number + 1:>3}: A/B {found.ratio:.3f} ({found.low:.3f} to {found.high:.3f}), {found.outcome}, "
                f"{spoiled} of 2 arms spoiled",
                flush=True,
            )
    finally:
        bench.close()
    print(f"{dict(verdicts)}: {1 - verdicts['no_difference'] / options.times:.0%} found to differ from themselves")


if __name__ == "__main__":
    main()
