"""Runs arms on one bench in this process, one after the other, and stores a line about each.

`TOKENDYNO_OUT`: a folder for `every.jsonl`.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

import msgspec

from tokendyno.backend import hardware
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.config import ArmRequest, Request, Workload
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.optimizations import defaults
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.document import document

MOST_FIXES = 4
SPARES = 4
"""Idle workers, which import while an arm runs."""
NOT_BACK_BYTES = 64 << 20
"""Memory of a GPU from which on an arm has left some behind."""
KEPT = (
    "requested",
    "effective",
    "evidence",
    "phases_s",
    "extra",
    "summary",
    "weight_bytes",
    "memory_predicted_bytes",
    "load",
    "annotations",
    "memory_check",
    "verdicts",
    "notes",
)
WORK = Workload(prompt_tokens=64, max_new_tokens=64, seed=1)


def used_bytes() -> int:
    """Bytes in use on all GPUs, from NVML."""
    return sum(gpu.memory_bytes - gpu.free_bytes for gpu in hardware.detect().gpus)


def start_spares(bench: Bench) -> None:
    """As many idle workers as the bench may have."""
    for _ in range(SPARES):
        bench.wake()  # each time it looks up it starts one more
        time.sleep(0.05)


def left_behind_bytes(bench: Bench, before: int) -> int:
    """End the worker of arm A and wait until the GPUs' memory is back at `before`. What is not, after 10 seconds; 0 if
    TOKENDYNO_SHARED_GPU says that other programs use these GPUs as well: NVML counts theirs too."""
    bench.pool.drop("A")  # safe: the bench is idle
    start_spares(bench)
    if os.environ.get("TOKENDYNO_SHARED_GPU"):
        return 0
    deadline_s = time.monotonic() + 10
    while (left := used_bytes() - before) >= NOT_BACK_BYTES and time.monotonic() < deadline_s:
        time.sleep(0.2)
    return left


def settled(bench: Bench, model: str, arm: str, work: Workload = WORK) -> tuple[dict[str, str], str]:
    """The choices of an arm after applying the fixes of its verdicts, and why it cannot run ("" if it can)."""
    requested = dict(parse_arm(model, arm).choices)
    choices, default = requested, defaults()
    for _ in range(MOST_FIXES):
        blocked = bench.check(Request(model, [ArmRequest("A", choices)], work))["A"].blocked
        if not blocked:
            return choices, ""
        fix = next((v.fix for v in blocked if v.fix and not set(v.fix) & set(requested)), None)
        if fix is None:
            return choices, blocked[0].reason
        choices = {axis: choice for axis, choice in {**choices, **fix}.items() if choice != default[axis]}
    return choices, "its fixes go in a circle"


def perform(bench: Bench, model: str, choices: dict[str, str], work: Workload = WORK) -> tuple[Run, dict[str, Any]]:
    """Run one arm to its end. Returns the run and its JSON document."""
    request = Request(model, [ArmRequest("A", choices)], work)
    run = bench.wait(bench.submit(request), timeout_s=560)
    return run, msgspec.to_builtins(document(run))


def keep(model: str, arm: str, run: Run | None, arm_document: dict[str, Any] | None, why: str, left: int) -> None:
    """Store one line for the tables, and print one for the log."""
    row: dict[str, Any] = {"model": model, "arm": arm, "why": why, "left_bytes": left}
    if run is not None and arm_document is not None:
        row |= {"status": run.status, "message": run.message}
        row |= {name: arm_document.get(name) for name in KEPT}
        row["text"] = arm_document["text"][:80]
    if folder := os.environ.get("TOKENDYNO_OUT"):
        with (Path(folder) / "every.jsonl").open("a") as out:
            out.write(json.dumps(row) + "\n")
    if why:
        print(f"{model} {arm}: not run: {why[:150]}")
    elif arm_document is None or not arm_document["summary"].get("latency_median_s"):
        print(f"{model} {arm}: {run.status if run else '?'}: {run.message[:300] if run else ''}")
    else:
        s = arm_document["summary"]
        failed = [row for row in arm_document["evidence"] if row["status"] == "failed"]
        bad = [f"{row['axis']} {row['planned']}->{row['effective']}: {row['proof']}"[:160] for row in failed]
        compile_s = arm_document["phases_s"].get("compile", 0.0)
        print(
            f"{model} {arm}: {1e3 * s['latency_median_s']:.2f} ms, ttft {1e3 * (s['ttft_s'] or 0):.0f} ms, peak "
            f"{(s['peak_memory_bytes'] or 0) / 2**20:.0f} MiB, compile {compile_s:.0f} s, left {left / 2**20:.0f} MiB "
            f"{run.status if run else ''} {bad or ''}"
        )
