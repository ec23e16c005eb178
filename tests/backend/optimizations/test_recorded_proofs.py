"""What proofs conclude from 1,500 drawn sets of counts, and from drawn traces, is as `recorded_proofs.json` has it.

A finding that differs was meant to, or is a fault. `python -m tests.backend.optimizations.test_recorded_proofs` records
all anew.
"""

import json
import random
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from transformers import DynamicCache

from backend.counts import RunCounts
from backend.optimizations import Observation, Optimization, all_axes
from backend.optimizations.axes.loop.axis import LOOP_NAME, STEP_NAME
from backend.optimizations.proof import ShapedCall, Trace
from backend.plan import LoadPlan, Plan
from tests.backend.arms.test_recorded_arms import drawn
from tests.support.machines import settled
from tests.support.tiny_models import tiny

FILE = Path(__file__).with_name("recorded_proofs.json")
DRAWS = 1_500
BY_COUNTS = {"compile", "compile_cache", "cuda_graphs", "experts", "loading", "loop", "speculation"}
COUNTED = [axis for axis in all_axes() if axis.many_requests or axis.name in BY_COUNTS]
"""Axes that look at counts, at names in the trace and at classes of modules; others look at tensors."""
OPS = ("aten::_grouped_mm", "transformers::grouped_mm_fallback", "aten::one_hot", LOOP_NAME, STEP_NAME, "aten::mm")
KERNELS = ("tokendyno_experts_up", "GroupProblemShape gemm", "tokendyno_matvec", "gemv")


def count(number: int, name: str, level: float) -> float | None:
    """Drawn for this name alone, so that a new count leaves the others as they were."""
    chance = random.Random(f"proof {number} {name}")
    return chance.choice((None, 0.0, level, level, level, float(chance.randrange(6))))


def observation(number: int) -> tuple[Optimization, Observation]:
    """An axis, and what it sees: small counts, many of them unknown or 0, and equal ones often."""
    chance = random.Random(f"proof {number}")
    axis = COUNTED[number % len(COUNTED)]
    model, machine, choices, work = drawn(chance.randrange(200))
    plan = settled(model, choices, machine, work).plan if chance.random() < 0.5 else Plan(LoadPlan(model.source))
    plan = plan.batched(kind=chance.choice(("off", "static", "continuous")))
    level = chance.choice((1, 2, 5))
    counts = RunCounts(**{name: count(number, name, float(level)) for name in RunCounts.__struct_fields__})
    counts.checked_tokens = counts.checked_tokens or 5.0  # never without the strange ones among them

    def some(names: tuple[str, ...]) -> Counter[str]:
        return Counter({name: chance.choice((1, 4, 8, 16)) for name in names if chance.random() < 0.3})

    runtime = Counter({"cudaGraphLaunch": 3} if chance.random() < 0.2 else {})
    shapes: Counter[ShapedCall] = Counter({("aten::index", ((4, 64, 32), ())): chance.randrange(12)})
    ops = some(OPS)
    trace = Trace(ops, some(KERNELS), runtime, chance.choice((1, 2, 4)), ops, some(OPS), shapes)
    seen = tiny("gpt_oss") if axis.name == "experts" else SimpleNamespace(
        config=SimpleNamespace(get_text_config=lambda decoder: SimpleNamespace(num_hidden_layers=2)),
        modules=list, device=torch.device("cpu"),
    )  # fmt: skip
    return axis, Observation(seen, DynamicCache(), plan, lambda: trace, counts)


def outcome(number: int) -> list[object]:
    """What is in effect and how far, and the numbers of the proof's sentence."""
    axis, seen = observation(number)
    found = axis.find(seen)
    return [
        found.effective,
        found.reached,
        found.expected,
        found.outcome,
        " ".join(re.findall(r"\d[\d,.]*", found.proof)),
    ]


RECORDED: list[list[object]] = json.loads(FILE.read_text()) if FILE.exists() else []


def test_every_draw_is_recorded() -> None:
    assert len(RECORDED) == DRAWS


@pytest.mark.parametrize("place", range(len(COUNTED)), ids=[axis.name for axis in COUNTED])
def test_proofs_conclude_what_was_recorded(place: int) -> None:
    for number in range(place, DRAWS, len(COUNTED)):
        assert outcome(number) == RECORDED[number], observation(number)[1].counts


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(outcome(number)) for number in range(DRAWS))
    FILE.write_text(f"[\n{lines}\n]\n")
