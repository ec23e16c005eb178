"""Measures what the constants of predicted memory are fitted to: arms in workers.

One run of at most four minutes: `TOKENDYNO_OUT=FOLDER pytest -m gpu -s tests/gpu/test_predict.py` writes
`FOLDER/memory.json` after each result, and prints the fit, which `python -m tools.bench.gpu.fit_memory FILE`
repeats on any machine. `test_reach.py` tests the predictions.

`TOKENDYNO_JOBS`: concurrent commands, default 3. Memory is counted per process; where NVML only counts the whole
device, nothing can be fitted and this fails.
"""

import json
import os
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tokendyno.backend import hardware
from tokendyno.backend.models import resolve
from tokendyno.backend.paths import ROOT
from tools.bench.gpu import fit_memory
from tools.bench.gpu.bench_cli import Pair

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

MIB = 1 << 20
WHOLE_S = 235  # everything has ended by then
LAST_START_S = 190  # no command starts after this


OWN = "cache=static,loop=own,cuda_graphs=manual"
PAIRS = {  # the longest first
    "qwen-compiled": Pair("random:Qwen3-0.6B", "cache=static,compile=default", OWN, 64, 64),
    "llama-8bit": Pair("random:Llama-3-8B", "quantization=torchao-int8", "quantization=bnb-int8", 500, 32),
    "mistral": Pair("random:Mistral-7B-v0.1", "", "cache=static", 2000, 64),
    "qwen-attention": Pair("random:Qwen3-0.6B", "", "attention=eager", 64, 300),
    "pocket-dynamic": Pair("pocket", "", "dtype=float32", 64, 100),
    "pocket-static": Pair("pocket", "cache=static", "cache=static,dtype=float32", 64, 100),
    "qwen-static": Pair("random:Qwen3-0.6B", "cache=static", "dtype=float32", 64, 64),
    "qwen-4bit": Pair("random:Qwen3-0.6B", "quantization=bnb-nf4", "quantization=quanto-int8", 64, 32),
}


def compare(name: str, pair: Pair, timeout_s: float = WHOLE_S) -> list[dict[str, Any]]:
    """A row for each arm. RuntimeError with the output of the command line if it failed."""
    done = subprocess.run(
        pair.command("--ignore-eos"), cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-500:])
    return rows(name, pair, json.loads(done.stdout))


def rows(name: str, pair: Pair, document: dict[str, Any]) -> list[dict[str, Any]]:
    """What `fit_memory` reads of each arm, and further figures, in bytes."""
    facts, gpus = resolve(pair.model), hardware.detect().gpus
    found = []
    for arm, asked in zip(document["arms"], (pair.a, pair.b), strict=True):
        extra, foreseen, checks = arm["extra"], arm["memory_predicted_bytes"], arm["memory_check"]
        found.append(
            {
                "name": f"{name} [{asked or 'defaults'}]",
                "model": pair.model,
                "prompt": pair.prompt,
                "new": pair.new,
                "effective": arm["effective"],
                "label": arm["memory_label"],
                "capability": list(gpus[0].capability) if gpus else [0, 0],
                "experts": facts.experts,
                "windowed_only": (facts.window or 0) if not facts.full_layers else 0,
                "process": int(extra.get("process_peak_bytes", 0)),
                "at_begin": arm["memory_samples"]["bytes"][:1],
                "allocated": int(extra.get("allocator_peak_bytes", 0)),
                "reserved": int(extra.get("allocator_reserved_bytes", 0)),
                "tensors": foreseen["tensors"],
                "total": foreseen["total"],
                "predicted": foreseen,
                "weights": checks["weights"],
                "kv": checks["kv"],
                "phases_s": arm["phases_s"],
                "notes": arm["notes"],
                "load": arm["load"],
            }
        )
    return found


def line(row: dict[str, Any]) -> str:
    """Print an arm, for the log."""
    beside = (row["process"] - row["reserved"]) / MIB
    return (
        f"{row['name']}: allocated {row['allocated'] / MIB:,.0f} (predicted {row['tensors'] / MIB:,.0f}), reserved "
        f"{row['reserved'] / MIB:,.0f}, process {row['process'] / MIB:,.0f} (predicted {row['total'] / MIB:,.0f}), "
        f"beside the allocator {beside:,.0f} MiB"
    )


def collect(out: Path, pairs: dict[str, Pair], last_start_s: float = LAST_START_S) -> dict[str, Any]:
    """Run everything, a few commands at a time, and write the results to `out`; failures are in "missing"."""
    found: dict[str, Any] = {"arms": [], "missing": {}, "machine": hardware.detect().describe()}
    begin_s = time.monotonic()

    def in_time(act: Callable[[float], list[dict[str, Any]]]) -> list[dict[str, Any]]:
        gone_s = time.monotonic() - begin_s
        if gone_s > last_start_s:
            raise RuntimeError("not begun: the time was up")
        return act(WHOLE_S - gone_s)

    with ThreadPoolExecutor(int(os.environ.get("TOKENDYNO_JOBS", "3"))) as pool:
        jobs = {pool.submit(in_time, partial(compare, name, pair)): name for name, pair in pairs.items()}
        for job in as_completed(jobs):
            name = jobs[job]
            try:
                found["arms"] += job.result()
                said = [line(row) for row in job.result()]
            except Exception as failed:
                found["missing"][name] = f"{type(failed).__name__}: {failed}"[-500:]
                said = [f"{name}: {found['missing'][name]}"]
            print(*said, f"[{name}, after {time.monotonic() - begin_s:.0f} s]", sep="\n", flush=True)
            found["took_s"] = time.monotonic() - begin_s
            out.write_text(json.dumps(found, indent=1))
    return found


def test_every_arm_gives_what_the_constants_are_fitted_from(tmp_path: Path) -> None:
    out = Path(os.environ.get("TOKENDYNO_OUT") or tmp_path) / "memory.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    found = collect(out, PAIRS)
    print("\n".join(fit_memory.tell(found)))
    assert found["missing"] == {}
    assert all(fit_memory.usable(arm) for arm in found["arms"]), "NVML does not count this process alone"
    assert all(abs(arm[part]["error"]) < 1 for arm in found["arms"] for part in ("weights", "kv"))
