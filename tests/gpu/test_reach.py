"""Predicted against measured memory: weights, cache, peaks of the allocator and of the process.

Pairs of arms share a process tree, so that the imports of both workers overlap. `TOKENDYNO_OUT`: a folder for the whole
documents and for `predict.json`, one row for each arm and part.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.refusals import skip_or_fail
from tokendyno.backend.paths import ROOT
from tools.bench.gpu.bench_cli import Pair

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

MIB = 1 << 20
REACH = {"weights": 1.0, "kv": 1.0, "allocator": 5.0, "peak": 5.0}
"""Largest error of a prediction, in percent; of the peak without what torch's allocator kept that no tensor used and
that was not predicted: the page tells it beside the prediction."""

ROWS: list[dict[str, Any]] = []


PAIRS = {
    "qwen-attention": Pair("random:Qwen3-0.6B", "", "attention=eager", 64, 100),
    "qwen-batch": Pair("random:Qwen3-0.6B", "cache=static", "cache=offloaded", 500, 32, 32),
    "llama-long": Pair("random:Llama-3-8B", "", "attention=eager", 4000, 32),
    "llama-4bit": Pair("random:Llama-3-8B", "quantization=bnb-nf4", "quantization=bnb-nf4-double", 2000, 32),
    "llama-8bit": Pair("random:Llama-3-8B", "quantization=torchao-int8", "quantization=bnb-int8", 1000, 16),
    "llama-packed": Pair("random:Llama-3-8B", "cache=quantized-fp8", "quantization=quanto-int8", 2000, 16),
    "mistral-window": Pair("random:Mistral-7B-v0.1", "", "cache=unwindowed", 5000, 48),
    "gemma-long": Pair("random:Gemma-3-1b", "", "attention=eager", 3000, 32),
    "gpt-oss": Pair("random:gpt-oss-20b", "", "cache=static", 1000, 32),
    "gpt-oss-packed": Pair("random:gpt-oss-20b", "quantization=mxfp4", "quantization=mxfp4,cache=static", 1000, 32),
    "gpt-oss-flash": Pair("random:gpt-oss-20b", "", "attention=flash_attention_3", 1000, 32),
    "gpt-oss-batch": Pair("random:gpt-oss-20b", "experts=grouped_mm", "", 100, 16, 8),
}


def run(name: str, pair: Pair) -> dict[str, Any]:
    """One comparison; a refused arm is a failure unless it is listed."""
    done = subprocess.run(pair.command(), cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    if done.returncode == 2:
        skip_or_fail(f"{pair.a},{pair.b}", done.stderr.strip().splitlines()[-1], pair.model)
    assert done.returncode == 0, done.stderr[-3000:]
    if folder := os.environ.get("TOKENDYNO_OUT"):
        (Path(folder) / f"predict-{name}.json").write_text(done.stdout)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rows(name: str, pair: Pair, document: dict[str, Any]) -> list[dict[str, Any]]:
    """Each part of each arm, with its bound and its median."""
    found = []
    for arm in document["arms"]:
        extra = arm["extra"]
        kept = extra["allocator_reserved_bytes"] - extra["allocator_peak_bytes"]
        kept -= arm["memory_predicted_bytes"].get("heap", 0)
        for part, check in arm["memory_check"].items():
            own = (check["measured"] - kept) / check["predicted"] - 1 if part == "peak" and check["measured"] else None
            found.append(
                {
                    "pair": name,
                    "arm": arm["name"],
                    "choices": {"A": pair.a, "B": pair.b}[arm["name"]],
                    "model": pair.model,
                    "part": part,
                    **check,
                    "kept": kept,
                    "own_error": check["error"] if own is None else 100 * own,
                    "floor_s": arm["summary"]["floor_s"],
                    "median_s": arm["summary"]["latency_median_s"],
                }
            )
    return found


@pytest.mark.parametrize("name", PAIRS)
def test_every_part_is_as_predicted(name: str) -> None:
    pair = PAIRS[name]
    found = rows(name, pair, run(name, pair))
    ROWS.extend(found)
    if folder := os.environ.get("TOKENDYNO_OUT"):
        (Path(folder) / "predict.json").write_text(json.dumps(ROWS, indent=1))
    for row in found:
        sizes = [f"{row[k] / MIB:,.1f}" if row[k] is not None else "n/a" for k in ("predicted", "measured")]
        error = "n/a" if row["error"] is None else f"{row['error']:+.2f}%"
        reserved = f", kept {row['kept'] / MIB:,.0f}, own {row['own_error']:+.2f}%" if row["part"] == "peak" else ""
        print(
            f"{name} {row['arm']} [{row['choices'] or 'defaults'}] {row['part']}: predicted {sizes[0]}, "
            f"measured {sizes[1]} MiB, {error}{reserved}"
        )
    wrong = [row for row in found if row["error"] is not None and abs(row["own_error"]) > REACH[row["part"]]]
    assert not wrong, [(row["arm"], row["choices"], row["part"], round(row["error"], 2)) for row in wrong]
    assert {row["part"] for row in found if row["error"] is not None} == set(REACH), "every part was measured"


def test_the_roofline_bound_is_below_every_median() -> None:
    """By the data sheet's bandwidth; uses the rows that the tests above measured."""
    known = [row for row in ROWS if row["floor_s"] and row["median_s"]]
    assert known, "no floor on this GPU: measure it with tokendyno doctor --bandwidth"
    assert all(row["floor_s"] < row["median_s"] for row in known)
