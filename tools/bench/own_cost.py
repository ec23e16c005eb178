"""Overhead of the app on a run: `python -m tools.bench.own_cost [--model M] [--arm ARM] [--pairs N]`, run by limit.py.

Alternates the same generation directly in this process, unobserved, with a run of the engine, whose worker times each
token, samples memory, monitors the GPU and sends events to a run log. The whole call is timed in both cases.
"""

import argparse
import json
import statistics
import time
from typing import Any

from backend.arms.parse import parse_arm
from backend.config import ArmRequest, Request, Workload
from backend.executors import open_bench
from backend.messages import Generate
from tools.bench.limit_arms import Work, give_back


def own_cost(model: str, arm: str, work: Work, pairs: int) -> list[float]:
    """Seconds of the app's run over those of the direct one, one ratio per pair. RuntimeError if a run fails."""
    import torch

    from backend.worker.channel import QueueChannel
    from backend.worker.load.loader import load
    from backend.worker.runners.choice import runner_for

    wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    workload = Workload(prompt="", prompt_tokens=work.prompt_tokens, max_new_tokens=work.new, ignore_eos=True)
    request = Request(model, [ArmRequest("A", dict(parse_arm(model, arm).choices))], workload)
    ratios = []
    bench = open_bench(None)
    bench.start()
    try:
        (checked,) = bench.check(request).values()
        if checked.blocked:
            raise RuntimeError(checked.blocked[0].reason)

        def app_s() -> float:
            run = bench.wait(bench.submit(request), timeout_s=560)
            finished = run.arms["A"].finished
            if run.status != "done" or finished is None:
                raise RuntimeError(run.message)
            return finished.wall_s

        plan = checked.plan
        channel = QueueChannel(lambda event: None)
        runner: Any = runner_for(load(plan.load, channel), plan, channel)
        job = Generate(plan, "", work.prompt_tokens, work.new, 1, 0.0, 0, True, True)
        runner.run(job)
        task = runner._prepare(job)

        def direct_s() -> float:
            wait()
            begin_s = time.perf_counter()
            runner._repeat(task, work.new)
            wait()
            return time.perf_counter() - begin_s

        app_s()
        direct_s()
        ratios = [app_s() / direct_s() for _ in range(pairs)]
    finally:
        bench.close()
        runner = None
        give_back()
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="random:Llama-3-8B")
    parser.add_argument("--arm", default="")
    parser.add_argument("--prompt-tokens", type=int, default=224)
    parser.add_argument("--new", type=int, default=400)
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    ratios = own_cost(options.model, options.arm, Work(options.prompt_tokens, options.new, 1), options.pairs)
    print(f"median {statistics.median(ratios):.4f}")
    print(json.dumps({"ratios": ratios}))


if __name__ == "__main__":
    main()
