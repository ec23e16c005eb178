"""What becomes of 300 drawn arms, verdict by verdict and byte by byte, is as `recorded_arms.txt` has it.

An arm that differs was meant to, or is a fault. `python -m tests.backend.arms.test_recorded_arms` records all anew; the
file has an arm a line, in words, so that its diff can be read.
"""

import random
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.support.machines import CPU, EIGHT, GIB, H200, facts, settled
from tokendyno.backend.arms.check import Checked, check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.hardware import Gpu, Machine
from tokendyno.backend.hardware.peak_rates import PeakRates
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.predict.roofline import bound
from tokendyno.backend.predict.setup import setup_of

FILE = Path(__file__).with_name("recorded_arms.txt")
ARMS = 300
MODELS = (
    "pocket",
    "random:gpt2",
    "random:bert-base-uncased",
    "random:Mistral-7B-v0.1",
    "random:Gemma-3-1b",
    "random:gpt-oss-20b",
    "random:Qwen3-0.6B",
    "random:Llama-3-8B",
    "random:Olmo-3-7B",
    "random:Qwen3-4B-Instruct-2507",
)
RATES = PeakRates(4.59e12, 989e12, "a test", 450e9)


def _card(name: str, memory: int, capability: tuple[int, int]) -> Machine:
    return replace(H200, gpus=(Gpu(0, name, memory * GIB, (memory - 1) * GIB, capability),))


MACHINES = (
    CPU,
    H200,
    EIGHT,
    replace(CPU, packages=()),
    replace(H200, packages=CPU.packages),
    _card("T4", 16, (7, 5)),
    _card("A100", 80, (8, 0)),
    _card("RTX 4090", 24, (8, 9)),
    _card("small", 4, (8, 6)),
)


def drawn(number: int) -> tuple[ModelFacts, Machine, dict[str, str], Workload]:
    """A model, a machine, up to four choices that are not the default, and a workload."""
    chance = random.Random(f"arm {number}")
    axes = chance.sample([axis for axis in all_axes() if not axis.many_requests], chance.randrange(5))
    names_of = {axis.name: sorted({choice.name for choice in axis.choices} - {axis.default}) for axis in axes}
    choices = {axis: chance.choice(names) for axis, names in names_of.items()}
    work = Workload(
        prompt_tokens=chance.choice((1, 7, 64, 128, 500, 2_000)),
        max_new_tokens=chance.choice((1, 9, 64, 700)),
        batch_size=chance.choice((1, 1, 2, 5)),
    )
    return facts(chance.choice(MODELS)), chance.choice(MACHINES), choices, work


def described(checked: Checked, model: ModelFacts, machine: Machine, work: Workload) -> str:
    """What the rules say, what is planned instead of what was asked for, and what is predicted."""
    said = []
    for verdict in checked.verdicts:
        fixes = ", ".join(f"{axis}={name}" for axis, name in sorted(verdict.fix.items()))
        becomes, fix = f" {verdict.becomes}" * bool(verdict.becomes), f" (fix: {fixes})" * bool(fixes)
        said.append(f"{verdict.axis} {verdict.level}{becomes}{fix}")
    changed = [f"{axis}={name}" for axis, name in sorted(checked.planned.items()) if checked.requested[axis] != name]
    sizes = [f"{name} {size:,}" for name, size in asdict(checked.memory).items() if size]
    parts = [", ".join(said), f"becomes {','.join(changed)}", f"bytes: {', '.join(sizes)}"]
    if packed := checked.plan.load.packed:
        parts.append(f"{packed} packed matrices")
    if not checked.blocked:
        step = bound(model, setup_of(checked.plan, machine), work.prompt_tokens, work.batch_size, RATES)
        parts.append(
            f"a step: {step.weight_bytes:,} + {step.kv_bytes:,} bytes, {step.flops:.6g} FLOP, {step.seconds:.6g} s"
        )
    return "; ".join(part for part in parts if part)


def outcome(number: int) -> str:
    """Of the arm as it was asked for; of every second one after the fixes that are offered."""
    model, machine, choices, work = drawn(number)
    if number % 2:
        checked = settled(model, choices, machine, work)
    else:
        checked = check(make_config(model.model, choices), model, machine, work)
    arm = ",".join(f"{axis}={name}" for axis, name in sorted(choices.items())) or "defaults"
    size = f"{work.prompt_tokens}+{work.max_new_tokens} tokens x {work.batch_size}"
    return f"{model.model} on {machine.name}, {size}, {arm}: {described(checked, model, machine, work)}"


RECORDED = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []


@pytest.mark.parametrize("first", range(0, ARMS, 50))
def test_drawn_arms_become_what_was_recorded(first: int) -> None:
    assert [outcome(number) for number in range(first, first + 50)] == RECORDED[first : first + 50]


if __name__ == "__main__":
    FILE.write_text("".join(f"{outcome(number)}\n" for number in range(ARMS)), encoding="utf-8")
