"""Whether the spans of a start account for its seconds: `python -m tools.bench.start_phases [--model M] [--arm ARM]`.

An arm runs in new processes, as it is and with true delays in turns: in its entry, its imports, the load, the warm-up
and the first pass over the prompt. Printed are medians: of each span and by how much it grew, and how much of the
seconds from process to first token the named spans hold ("between" is none of them). Exit code 1 if a delay did not
land in its span, or they hold less than 98%. Wants an idle machine: on a busy one imports vary by more than a delay.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Mapping

from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.config import ArmRequest, Request, Workload
from tokendyno.backend.engine.executor import ExecutorKind
from tokendyno.backend.executors import KINDS, open_bench
from tokendyno.backend.executors.subprocess import WorkerProcess
from tokendyno.backend.views.start import TITLES, Start, start_of

VARIABLE = "TOKENDYNO_BENCH_DELAYS"
DELAYS_S = {"start": 0.7, "import": 1.1, "read": 0.9, "warmup": 1.3, "prefill": 0.6}
"""By span. All differ, so that one that lands in another's span is seen."""

LEAST_SHARE = 0.98


class Delayed(WorkerProcess):
    """A new process whose worker is delayed."""

    def _module(self) -> list[str]:
        return ["tools.bench.start_phases", "--worker", str(os.getpid())]


class _Slow:
    """Finds no module, and takes its time for one."""

    def __init__(self, name: str, seconds: float) -> None:
        self._name, self._seconds = name, seconds

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == self._name:
            time.sleep(self._seconds)


def work(parent: int, delays_s: Mapping[str, float]) -> None:
    """A worker with these delays; never returns."""
    time.sleep(delays_s.get("start", 0.0))
    from tokendyno.backend.worker import __main__ as entry
    from tokendyno.backend.worker.lazy_imports import kept_imports
    from tokendyno.backend.worker.lifetime import die_with_parent

    die_with_parent(parent)
    if "import" in delays_s:
        sys.meta_path.insert(0, _Slow("torch", delays_s["import"]))
    with kept_imports():
        import tokendyno.backend.worker.serve  # noqa: F401
        from tokendyno.backend.worker.load.progress import LoadProgress
        from tokendyno.backend.worker.measure.annotations import Annotations
        from tokendyno.backend.worker.runners.warmup import WarmUp

    for of, method, span in (
        (LoadProgress, "__enter__", "read"),
        (WarmUp, "perform", "warmup"),
        (Annotations, "start", "prefill"),
    ):

        def late(*given: object, plain: object = getattr(of, method), span: str = span) -> object:
            time.sleep(delays_s.get(span, 0.0))
            return plain(*given)  # type: ignore[operator]

        setattr(of, method, late)
    entry.work()


def started(request: Request, delays_s: Mapping[str, float]) -> Start:
    """The start of the arm in a process with these delays. RuntimeError if the run fails."""
    os.environ[VARIABLE] = json.dumps(dict(delays_s))
    bench = open_bench(executor="cold")
    bench.start()
    try:
        run = bench.runs.get(bench.submit(request))
        assert run is not None
        while not run.ended:
            time.sleep(0.05)
        found = start_of(run.snapshot().arms["A"], alone=True)
        if run.status != "done" or found is None:
            raise RuntimeError(f"the run failed: {run.message}")
        return found
    finally:
        bench.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="pocket")
    parser.add_argument("--arm", default="dtype=float32")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        work(options.worker, json.loads(os.environ[VARIABLE]))
    KINDS["cold"] = ExecutorKind(Delayed)
    arm = ArmRequest("A", dict(parse_arm(options.model, options.arm).choices))
    request = Request(options.model, [arm], Workload(prompt="Once", max_new_tokens=8, ignore_eos=True), proof=False)
    started(request, {})  # fills the page cache
    found: dict[str, list[Start]] = {"as it is": [], "delayed": []}
    for _ in range(options.rounds):
        for name, delays_s in (("as it is", {}), ("delayed", DELAYS_S)):
            found[name].append(started(request, delays_s))

    def median_s(name: str, span: str) -> float:
        return statistics.median(start.spans_s.get(span, 0.0) for start in found[name])

    wrong = []
    print(f"{'span':10} {'as it is':>9} {'delayed':>9} {'grew by':>9} {'injected':>9}   seconds")
    for span in [span for span in TITLES if median_s("as it is", span) or median_s("delayed", span)]:
        before_s, after_s, injected_s = median_s("as it is", span), median_s("delayed", span), DELAYS_S.get(span, 0.0)
        print(f"{span:10} {before_s:9.3f} {after_s:9.3f} {after_s - before_s:9.3f} {injected_s:9.3f}")
        if span != "between" and abs(after_s - before_s - injected_s) > 0.1 * injected_s + 0.2 * before_s:
            wrong.append(f"{span} grew by {after_s - before_s:.3f} s for {injected_s} s")
    for name, starts in found.items():
        share = statistics.median(1 - start.spans_s.get("between", 0.0) / start.total_s for start in starts)
        print(f"{name}: named spans hold {share:.2%} of {statistics.median(start.total_s for start in starts):.3f} s")
        if share < LEAST_SHARE:
            wrong.append(f"{name}: only {share:.2%} is in a named span")
    sys.exit("; ".join(wrong) or None)


if __name__ == "__main__":
    main()
