"""Static against continuous batching of many requests on one GPU, each choice of both, in one process.

    python -m tools.bench.gpu.batching [--model random:Llama-3-8B] [--traffic at-once] [--requests N] [--concurrent 16]
        [--arms NAME,NAME] [--seconds 120] [--no-proof] [--json FILE]

The same for gpt-oss: --model random:gpt-oss-20b. The names of the arms are those of ARMS below. An arm that does not
end within --seconds is stopped after the step in flight, and said to be. Useful tokens: those that requests asked for;
padding and rows whose request has ended do not count. The ceiling is the share of rows that did something.
"""

import argparse
import faulthandler
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tokendyno.backend import hardware
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import workload_of
from tokendyno.backend.messages import Event, Finished, Generate, PageMoves, PagesAllocated, RequestEnds, Steps, Waits
from tokendyno.backend.models import resolve
from tokendyno.backend.runs.batch_series import BatchSeries
from tokendyno.backend.runs.statistics import median
from tokendyno.backend.traffic import Traffic
from tokendyno.backend.traffic.presets import drawn, traffic_preset
from tokendyno.backend.worker.channel import QueueChannel
from tokendyno.backend.worker.load.loader import LoadedModel, load
from tokendyno.backend.worker.runners.choice import runner_for

STATIC = {"batching": "static"}
FIXED = STATIC | {"cache": "static", "shapes": "buckets"}
OWN = FIXED | {"loop": "own"}
CONTINUOUS = {"batching": "continuous"}
FLASH = CONTINUOUS | {"attention": "kernels-community/vllm-flash-attn3"}
ARMS: dict[str, dict[str, str]] = {
    "static-eager": STATIC | {"attention": "eager"},
    "static-sorted": STATIC | {"attention": "eager", "batch_order": "sorted"},
    "static-compiled": FIXED | {"compile": "reduce-overhead"},
    "static-own-captured": OWN | {"cuda_graphs": "manual"},
    "static-own-compiled": OWN | {"cuda_graphs": "manual", "compile": "max-autotune-no-cudagraphs"},
    "continuous": CONTINUOUS,
    "continuous-small-pages": CONTINUOUS | {"page_size": "16"},
    "continuous-graphs": CONTINUOUS | {"batch_graphs": "on"},
    "continuous-async": CONTINUOUS | {"async_batching": "on"},
    "continuous-graphs-async": CONTINUOUS | {"batch_graphs": "on", "async_batching": "on"},
    "flash": FLASH,
    "flash-graphs": FLASH | {"batch_graphs": "on"},
    "flash-graphs-pages-32": FLASH | {"batch_graphs": "on", "page_size": "32"},
    "flash-async": FLASH | {"async_batching": "on"},
    "flash-graphs-async": FLASH | {"batch_graphs": "on", "async_batching": "on"},
}


class Bed:
    """At most one loaded model, and what its runs sent."""

    def __init__(self, model: str, traffic: Traffic, limit_s: float, prove: bool) -> None:
        self.facts, self.machine = resolve(model), hardware.detect()
        self.model, self.traffic, self.limit_s, self.prove = model, traffic, limit_s, prove
        self.events: list[Event] = []
        self.channel = QueueChannel(self.events.append)
        self.key = ""
        self.loaded: LoadedModel | None = None

    def run(self, choices: dict[str, str]) -> dict[str, Any]:
        """One arm: its figures, or why there are none."""
        work = workload_of(self.traffic, ignore_eos=True)
        checked = check(make_config(self.model, choices), self.facts, self.machine, work, 0, self.traffic)
        if checked.blocked:
            return {"refused": checked.blocked[0].reason}
        plan = checked.plan
        if self.loaded is None or self.key != plan.load_key:
            self.loaded = None  # frees the old one first
            self.loaded, self.key = load(plan.load, self.channel), plan.load_key
        cancelled, begin_s = threading.Event(), time.perf_counter()
        runner = runner_for(self.loaded, plan, self.channel, cancelled, many=True)
        timer = threading.Timer(self.limit_s, cancelled.set)
        self.events.clear()
        timer.start()
        faulthandler.dump_traceback_later(3 * self.limit_s, exit=True)  # a step that never ends cannot be cancelled
        try:
            runner.run(
                Generate(
                    plan,
                    "",
                    work.prompt_tokens,
                    work.max_new_tokens,
                    work.batch_size,
                    0.0,
                    0,
                    True,
                    True,
                    prove=self.prove,
                    traffic=self.traffic,
                )
            )
        except Exception as error:  # one arm that fails is reported, and the others run
            return {"failed": f"{type(error).__name__}: {str(error)[:300]}"}
        finally:
            timer.cancel()
            faulthandler.cancel_dump_traceback_later()
        return self._figures(time.perf_counter() - begin_s)

    def _figures(self, whole_s: float) -> dict[str, Any]:
        series, finished = BatchSeries(), self.events[-1]
        assert isinstance(finished, Finished)
        for event in self.events:
            if isinstance(event, Steps | Waits | PageMoves | PagesAllocated | RequestEnds):
                series.take(event)
        rows, counts = series.requests, finished.extra
        first_s = [row.first_token_s for row in rows.values() if row.first_token_s is not None]
        end_s = [row.end_s for row in rows.values() if row.end_s is not None]
        step_s = sorted(end - begin for begin, end in zip(series.begin_s, series.end_s, strict=True))
        return {
            "reason": finished.reason,
            "whole_s": whole_s,
            "wall_s": finished.wall_s,
            "useful_tokens": counts.useful_tokens,
            "useful_tokens_s": (counts.useful_tokens or 0) / finished.wall_s,
            "steps": len(series.end_s),
            "step_median_s": median(step_s) if step_s else None,
            "ceiling": (counts.busy_steps or 0) / (counts.slot_steps or 1),
            "ttft_median_s": median(first_s) if first_s else None,
            "end_median_s": median(end_s) if end_s else None,
            "counts": counts_of(finished),
            "ids": [rows[i].ids if i in rows else [] for i in range(len(self.traffic.requests))],
            "findings": [
                [f.axis, f.effective, f.reached, f.expected, f.proof]
                for f in finished.findings
                if f.outcome != "not_applicable"
            ],
        }


def counts_of(finished: Finished) -> dict[str, float]:
    """What was counted about many requests."""
    wanted = (
        "batch",
        "batches",
        "paged",
        "rows",
        "padding",
        "idle",
        "busy",
        "slot",
        "overlapped",
        "own_steps",
        "graph_captures",
        "widest",
        "cut",
        "kv_",
        "process_peak",
        "allocator_peak",
    )
    extra = finished.extra
    return {name: v for name in extra.__struct_fields__ if name.startswith(wanted) and (v := getattr(extra, name))}


def line(name: str, found: dict[str, Any], same: int | None) -> str:
    """One arm in one line."""
    if "useful_tokens_s" not in found:
        return f"{name:<26} " + "; ".join(f"{key}: {value}" for key, value in found.items())
    return (
        f"{name:<26} {found['useful_tokens_s']:8.0f} useful tokens/s {found['wall_s']:7.2f} s {found['steps']:6d} steps"
        f" {1e3 * found['step_median_s']:7.2f} ms ceiling {found['ceiling']:.2f} TTFT {found['ttft_median_s']:.2f} s "
        f"{found['reason']}, same tokens as the first arm: {same}"
    )


def main() -> None:
    """Run the arms in turn and print a line for each as it ends."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="random:Llama-3-8B")
    parser.add_argument("--traffic", default="at-once")
    parser.add_argument("--requests", type=int, default=0)
    parser.add_argument("--concurrent", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--no-proof", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    preset = traffic_preset(given.traffic)
    shape = preset.draw
    if given.requests:
        shape = type(shape)(**{f: getattr(shape, f) for f in shape.__struct_fields__} | {"requests": given.requests})
    traffic = drawn(shape, given.seed, given.concurrent)
    print(traffic.label, flush=True)
    bed = Bed(given.model, traffic, given.seconds, not given.no_proof)
    results: dict[str, dict[str, Any]] = {}
    first: list[list[int]] | None = None
    for name in given.arms.split(","):
        found = bed.run(ARMS[name])
        ids = found.pop("ids", None)
        same = None
        if ids is not None:
            first = first or ids
            same = found["same_tokens"] = sum(a == b for a, b in zip(ids, first, strict=True))
        results[name] = found
        print(line(name, found, same), flush=True)
        if given.json:
            given.json.write_text(
                json.dumps({"model": given.model, "traffic": traffic.label, "arms": results}, indent=1)
            )
    print(f"python {sys.version.split()[0]}, {hardware.versions()}", flush=True)


if __name__ == "__main__":
    main()
