"""What the app adds to a run: `python -m tests.bench.own_cost [--model M] [--arm ARM] [--pairs N]`, run by limit.py.

The same generation in turn: directly in this process, with nobody watching, and as a run of the engine, in a worker
that times each token, samples memory, watches the GPU and sends events to a run log. The whole call of both is timed.
"""

import argparse
import json
import os
import statistics
import time

from backend.arms import parse_arm
from backend.config import Workload
from backend.engine import Bench
from backend.messages import Generate
from backend.optimizations.lengths import cache_places
from backend.records import ArmRequest, Request
from tests.bench.limit_arms import Work, give_back


def own_cost(model: str, arm: str, work: Work, pairs: int) -> list[float]:
    """Seconds of the app's run / seconds of the direct one, one ratio a pair. RuntimeError says why there are none."""
    import torch

    from backend.worker.decode import Decoder
    from backend.worker.loader import load
    from backend.worker.outbox import Outbox
    from backend.worker.prompt import read_prompt
    from backend.worker.shapes import pad

    wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    workload = Workload(prompt="", prompt_tokens=work.prompt_tokens, max_new_tokens=work.new, ignore_eos=True)
    request = Request(model, [ArmRequest("A", dict(parse_arm(model, arm).choices))], workload)
    ratios = []
    bench = Bench(None)
    bench.start()
    try:
        (checked,) = bench.check(request).values()
        if checked.blocked:
            raise RuntimeError(checked.blocked[0].reason)

        def app_s() -> float:
            run = bench.wait(bench.submit(request), timeout_s=560)
            finished = run.lanes["A"].finished
            if run.status != "done" or finished is None:
                raise RuntimeError(run.message)
            return finished.wall_s

        plan = checked.plan
        outbox = Outbox(os.open(os.devnull, os.O_WRONLY))
        decoder = Decoder(load(plan.load, outbox), outbox)
        job = Generate(plan, "", work.prompt_tokens, work.new, 1, 0.0, 0, True, True)
        decoder.run(job)
        prompt = pad(read_prompt(decoder.bench, job), plan.generate.shapes, decoder.bench.pad)
        length = cache_places(plan.generate.shapes, prompt.tokens, work.new)

        def direct_s() -> float:
            wait()
            begin_s = time.perf_counter()
            decoder._make(job, prompt, length, work.new)
            wait()
            return time.perf_counter() - begin_s

        app_s()
        direct_s()
        ratios = [app_s() / direct_s() for _ in range(pairs)]
    finally:
        bench.close()
        decoder = None  # type: ignore[assignment]
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
