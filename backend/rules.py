"""From what was asked to what will be done: every axis's verdicts, and the plan.

Nothing here changes a request. A fallback is a verdict with the choice that will run instead; a blocked arm
has no plan to run, only reasons and fixes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from backend.config import Config, Workload
from backend.errors import InputError
from backend.hardware import Machine
from backend.models import ModelFacts
from backend.optimizations import Subject, axes
from backend.plan import LoadPlan, Plan
from backend.predict.memory import MemoryEstimate, peak_bytes
from backend.predict.weights import itemsize
from backend.records import Verdict


@dataclass(frozen=True, slots=True)
class Checked:
    """An arm after the rules. `requested` and `planned` name every axis."""

    requested: Mapping[str, str]
    planned: Mapping[str, str]
    verdicts: tuple[Verdict, ...]
    plan: Plan
    itemsize: int
    memory: MemoryEstimate

    @property
    def blocked(self) -> tuple[Verdict, ...]:
        return tuple(v for v in self.verdicts if v.level == "blocked")

    def require_runnable(self) -> None:
        """InputError naming the first reason why this arm cannot run, and what to do."""
        for verdict in self.blocked:
            fix = ", ".join(f"{axis}={choice}" for axis, choice in verdict.fix.items())
            raise InputError(verdict.reason + (f" Set {fix}." if fix else ""))


def check(config: Config, facts: ModelFacts, machine: Machine, workload: Workload, held_bytes: int = 0) -> Checked:
    """Judge an arm and plan it. `held_bytes`: what the bench's own workers hold now and would give back."""
    requested = {axis.name: axis.default for axis in axes()} | dict(config.choices)
    subject = Subject(facts, machine, requested)
    verdicts: list[Verdict] = []
    planned: dict[str, str] = {}
    plan = Plan(LoadPlan(facts.source, device=machine.device))
    for axis in axes():
        found = axis.verdicts(requested[axis.name], subject)
        verdicts += found
        choice = next((v.becomes for v in found if v.level == "fallback"), requested[axis.name])
        planned[axis.name] = axis.resolve(choice, subject)
        plan = axis.edit(plan, planned[axis.name], subject)
    dtype = facts.dtype if plan.load.dtype == "auto" else plan.load.dtype
    verdicts += _of_the_whole(facts, workload)
    memory = peak_bytes(
        facts, dtype, plan.generate.cache, prompt_tokens(workload), workload.max_new_tokens, workload.batch_size,
        machine.device, attention=plan.load.attention,
    )  # fmt: skip
    if memory.total > machine.room_bytes + held_bytes:
        verdicts.append(_too_big(facts, memory, machine, machine.room_bytes + held_bytes))
    return Checked(requested, planned, tuple(verdicts), plan, itemsize(facts, dtype), memory)


def prompt_tokens(workload: Workload) -> int:
    """Tokens of the prompt, estimated before there is a tokenizer: at most one a byte, about 3.5 bytes each."""
    return workload.prompt_tokens or max(1, round(len(workload.prompt.encode()) / 3.5))


def _of_the_whole(facts: ModelFacts, workload: Workload) -> list[Verdict]:
    found = []
    if facts.kind == "encoder":
        found.append(
            Verdict(
                "blocked",
                "model",
                f"{facts.label} is an encoder: it makes no tokens to measure. Pick a model that generates text, such "
                "as pocket or gpt2.",
            )
        )
    elif workload.prompt_tokens and workload.prompt_tokens + workload.max_new_tokens > facts.max_positions:
        total = workload.prompt_tokens + workload.max_new_tokens
        found.append(
            Verdict(
                "blocked",
                "model",
                f"{workload.prompt_tokens:,} prompt tokens and {workload.max_new_tokens:,} new ones make {total:,}, "
                f"but {facts.label} has {facts.max_positions:,} positions. Ask for fewer tokens.",
            )
        )
    elif workload.max_new_tokens >= facts.max_positions:
        found.append(
            Verdict(
                "blocked",
                "model",
                f"{facts.label} has {facts.max_positions:,} positions: {workload.max_new_tokens:,} new tokens do not "
                "fit behind a prompt. Ask for fewer.",
            )
        )
    return found


def _too_big(facts: ModelFacts, memory: MemoryEstimate, machine: Machine, room: int) -> Verdict:
    gib = 1 << 30
    where = "GPU memory" if machine.device == "cuda" else "memory"
    return Verdict(
        "blocked",
        "model",
        f"{facts.label} will need about {memory.total / gib:.1f} GiB of {where} ({memory.total:,} bytes: weights "
        f"{memory.weights:,}, KV cache {memory.kv:,}), and {room / gib:.1f} GiB "
        f"({room:,} bytes) are free. Take a smaller model, a 2-byte dtype, a shorter length or batch, "
        "or close other programs.",
        {},
        "backend/predict/memory.py",
    )
