"""Fits the constants of `backend/predict/memory.py` to the file that `test_predict.py` wrote.

`python -m tools.bench.gpu.fit_memory FILE`.

Two non-negative least-squares fits of the error in percent of the process's peak: what the process takes beyond the
allocator's memory (context, plans, features), and what the allocator reserves beyond what it hands out (a fixed part
and a share). The error of an arm is that of its predicted peak.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

from tokendyno.backend.predict import memory
from tokendyno.backend.views.memory_check import OF_PROCESS

MIB = 1 << 20
ROUNDS = 20_000


@dataclass(frozen=True, slots=True)
class Fitted:
    """context   bytes of every process
    features  bytes that each one adds; "plans" for each length; 0 of those that no arm had
    reserved_bytes, reserved_share  beyond what the allocator hands out
    """

    context: float
    features: dict[str, float]
    reserved_bytes: float
    reserved_share: float

    def error_percent(self, arm: Mapping[str, Any]) -> float:
        """How much more the arm's process took than these constants and its tensors, as foreseen, would say."""
        used = features(arm)
        beside = self.context + sum(size * used[name] for name, size in self.features.items())
        return above(arm, arm["tensors"] * (1 + self.reserved_share) + self.reserved_bytes + beside)


def above(arm: Mapping[str, Any], foreseen: float) -> float:
    """Percent by which the measured peak exceeds a prediction."""
    return float(100 * (arm["process"] / foreseen - 1))


def features(arm: Mapping[str, Any]) -> dict[str, float]:
    """The features that an arm used, from its ledger; "plans" counts sequence lengths, as `memory._runtime` does."""
    found = arm["effective"]
    used = {
        "experts": arm["experts"] > 0,
        "compile": found.get("compile", "off") != "off",
        "graph": found.get("cuda_graphs", "off") != "off",
        **{kind: found.get("quantization", "none").startswith(kind) for kind in ("torchao", "bnb", "quanto")},
    }
    grows = "static" not in found.get("cache", "dynamic")
    half = found.get("dtype") in ("bfloat16", "float16")
    planned = grows and half and found.get("attention") == "sdpa" and tuple(arm["capability"]) >= (9, 0)
    lengths = float(arm["new"]) if planned else 0.0
    if found.get("cache") == "dynamic" and arm["windowed_only"]:
        lengths = min(lengths, arm["windowed_only"])
    return {"plans": lengths, "cudnn": float(lengths > 0)} | {name: float(on) for name, on in used.items()}


def not_negative(columns: Sequence[Sequence[float]], wanted: Sequence[float]) -> list[float]:
    """Non-negative least squares by coordinate descent."""
    matrix, target = numpy.array(columns, dtype=float).T, numpy.array(wanted, dtype=float)
    sizes = numpy.linalg.norm(matrix, axis=0)
    matrix = matrix / numpy.where(sizes, sizes, 1)
    products, aims = matrix.T @ matrix, matrix.T @ target
    answer = numpy.zeros(len(sizes))
    for _ in range(ROUNDS):
        before = answer.copy()
        for i in range(len(answer)):
            if sizes[i]:
                answer[i] = max(0.0, answer[i] + aims[i] - products[i] @ answer)
        if numpy.abs(answer - before).max() <= 1e-12 * max(1.0, numpy.abs(answer).max()):
            break
    return [float(a / s) if s else 0.0 for a, s in zip(answer, sizes, strict=True)]


def usable(arm: Mapping[str, Any]) -> bool:
    """Whether NVML counted only this process, and the allocator was read."""
    return bool(OF_PROCESS in arm["label"] and "NVML" in arm["label"] and arm["reserved"] and arm["allocated"])


def fit(arms: Sequence[Mapping[str, Any]]) -> Fitted:
    """The fitted constants. ValueError if no arm is usable."""
    arms = [arm for arm in arms if usable(arm)]
    if not arms:
        raise ValueError("No arm has a peak that NVML counted for its process alone, with the allocator's.")
    table = [features(arm) for arm in arms]
    names = list(table[0])
    weights = [1 / arm["process"] for arm in arms]
    columns = [weights, *([w * row[name] for w, row in zip(weights, table, strict=True)] for name in names)]
    beside = [w * (arm["process"] - arm["reserved"]) for w, arm in zip(weights, arms, strict=True)]
    context, *sizes = not_negative(columns, beside)
    shares = [w * arm["allocated"] for w, arm in zip(weights, arms, strict=True)]
    loose = [w * (arm["reserved"] - arm["allocated"]) for w, arm in zip(weights, arms, strict=True)]
    fixed, share = not_negative([weights, shares], loose)
    return Fitted(context, dict(zip(names, sizes, strict=True)), fixed, share)


def tell(document: Mapping[str, Any]) -> list[str]:
    """The fit as text: present and fitted constants, errors."""
    lines = [f"arm {arm['name']} left out: {arm['label']}" for arm in document["arms"] if not usable(arm)]
    found = fit(document["arms"])
    plans = found.features["plans"]
    lines += [
        f"CONTEXT_BYTES = {found.context / MIB:.0f} * MIB  # now {memory.CONTEXT_BYTES / MIB:.0f}",
        f"PLAN_BYTES = {plans / 1024:.0f} << 10  # now {memory.PLAN_BYTES / 1024:.0f}",
        f"RESERVED_SHARE = {found.reserved_share:.4f}  # now {memory.RESERVED_SHARE}",
        f"RESERVED_BYTES = {found.reserved_bytes / MIB:.0f} * MIB  # now {memory.RESERVED_BYTES / MIB:.0f}",
    ]
    sizes = {name: size for name, size in found.features.items() if name != "plans"}
    lines += [f"FEATURE {name} = {size / MIB:.0f} * MIB" for name, size in sizes.items()]
    arms = [arm for arm in document["arms"] if usable(arm)]
    for arm in arms:
        lines.append(
            f"{arm['name']}: measured against predicted {above(arm, arm['total']):+.2f}% now, "
            f"{found.error_percent(arm):+.2f}% with the fit"
        )
    worst = max(arms, key=lambda arm: abs(found.error_percent(arm)))
    return [*lines, f"worst with the fit: {worst['name']}, {found.error_percent(worst):+.2f}%"]


if __name__ == "__main__":
    print("\n".join(tell(json.loads(Path(sys.argv[1]).read_text()))))
