"""From what was asked to what will be done: every axis's verdicts, and the plan.

Nothing here changes a request. A fallback is a verdict with the choice that will run instead; a blocked arm
has no plan to run, only reasons and fixes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from backend.config import Config, Workload
from backend.errors import InputError
from backend.hardware import Machine
from backend.models import ModelFacts
from backend.optimizations import Optimization, Subject, axes
from backend.optimizations.lengths import cache_places, rounded
from backend.plan import LoadPlan, Plan
from backend.predict.memory import MemoryEstimate, Setup, peak_bytes
from backend.predict.weights import itemsize
from backend.records import Verdict
from backend.remedies import REMEDIES


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

    def require_runnable(self, arm: str = "") -> None:
        """InputError naming the first reason why this arm (called `arm`, beside another) cannot run, and a way out."""
        for verdict in self.blocked:
            fix = ", ".join(f"{axis}={choice}" for axis, choice in verdict.fix.items())
            raise InputError((f"Arm {arm}: " if arm else "") + verdict.reason + (f" Set {fix}." if fix else ""))


def check(config: Config, facts: ModelFacts, machine: Machine, workload: Workload, held_bytes: int = 0) -> Checked:
    """Judge an arm and plan it. `held_bytes`: what the bench's own workers hold now and would give back."""
    requested = {axis.name: axis.default for axis in axes()} | dict(config.choices)
    verdicts, planned, plan = _plan(requested, facts, machine, workload.batch_size)
    dtype = facts.dtype if plan.load.dtype == "auto" else plan.load.dtype
    verdicts += _of_the_whole(facts, workload)
    memory = _foresee(plan, facts, machine, workload)
    room = machine.room_bytes + held_bytes
    if memory.total > room:
        verdicts.append(_too_big(facts, memory, machine, room, *_remedy(requested, facts, machine, workload, room)))
    return Checked(requested, planned, tuple(verdicts), plan, itemsize(facts, dtype), memory)


def _plan(
    requested: Mapping[str, str], facts: ModelFacts, machine: Machine, batch_size: int
) -> tuple[list[Verdict], dict[str, str], Plan]:
    """What every axis says of its choice, the choice that will be done, and the plan of all of them."""
    subject = Subject(facts, machine, requested, batch_size)
    verdicts: list[Verdict] = []
    planned: dict[str, str] = {}
    plan = Plan(LoadPlan(facts.source, device=machine.device))
    for axis in axes():
        if axis.decoders_only and facts.kind == "encoder":
            found = _nothing_to_switch(axis, requested[axis.name], facts)
        else:
            found = axis.verdicts(requested[axis.name], subject)
        verdicts += found
        choice = next((v.becomes for v in found if v.level == "fallback"), requested[axis.name])
        planned[axis.name] = axis.resolve(choice, subject)
        plan = axis.edit(plan, planned[axis.name], subject)
    return verdicts, planned, plan


def setup_of(plan: Plan, machine: Machine) -> Setup:
    """A plan as far as its memory and its floor go."""
    graphs = ""
    if plan.generate.cuda_graphs == "manual":
        graphs = "manual" if plan.load.kernels != "local" else ""  # whose products need nothing of cuBLAS
    elif plan.generate.compile_mode in ("reduce-overhead", "max-autotune") and plan.generate.cuda_graphs != "off":
        graphs = "compile"
    return Setup(
        dtype=plan.load.dtype, quantization=plan.load.quantization, cache=plan.generate.cache,
        attention=plan.load.attention, experts=plan.load.experts, device=plan.load.device,
        capability=machine.capability, padded=plan.generate.shapes in ("padded", "buckets"),
        graphs=graphs,
    )  # fmt: skip


def _foresee(plan: Plan, facts: ModelFacts, machine: Machine, workload: Workload) -> MemoryEstimate:
    shapes, prompt, new_tokens = plan.generate.shapes, prompt_tokens(workload), workload.max_new_tokens
    setup = replace(setup_of(plan, machine), max_places=cache_places(shapes, prompt, new_tokens))
    return peak_bytes(facts, setup, rounded(shapes, prompt), new_tokens, workload.batch_size)


def _remedy(
    requested: Mapping[str, str], facts: ModelFacts, machine: Machine, workload: Workload, room: int
) -> tuple[dict[str, str], int]:
    """The change with the least loss that makes an arm fit and is not refused itself, and what it then needs."""
    known = {axis.name: {choice.name for choice in axis.choices} for axis in axes()}
    before = _plan(requested, facts, machine, workload.batch_size)[0]
    for change in REMEDIES:
        new = {axis: choice for axis, choice in change.items() if requested.get(axis) != choice}
        if len(new) < len(change) or not all(choice in known.get(axis, ()) for axis, choice in new.items()):
            continue
        verdicts, _, plan = _plan({**requested, **new}, facts, machine, workload.batch_size)
        needed = _foresee(plan, facts, machine, workload).total
        refused = [v for v in verdicts if v.level in ("blocked", "fallback") and v not in before]
        if needed <= room and not refused:
            return new, needed
    return {}, 0


def prompt_tokens(workload: Workload) -> int:
    """Tokens of the prompt, estimated before there is a tokenizer: at most one a byte, about 3.5 bytes each."""
    return workload.prompt_tokens or max(1, round(len(workload.prompt.encode()) / 3.5))


_ENCODERS = "backend/worker/forward.py: what is measured of an encoder are forward passes"
_NO_TOKENS = "{} is an encoder: it makes no tokens and keeps no KV cache, so {} has nothing to switch."


def _nothing_to_switch(axis: Optimization, choice: str, facts: ModelFacts) -> list[Verdict]:
    if choice == axis.default:
        return []
    reason = _NO_TOKENS.format(facts.label, axis.title)
    return [Verdict("blocked", axis.name, reason, {axis.name: axis.default}, _ENCODERS)]


def _of_an_encoder(facts: ModelFacts, workload: Workload) -> list[Verdict]:
    found = []
    if workload.prompt_tokens > facts.max_positions:
        reason = (
            f"{workload.prompt_tokens:,} prompt tokens, but {facts.label} has {facts.max_positions:,} positions. Ask "
            "for fewer prompt tokens."
        )
        found.append(Verdict("blocked", "model", reason, {}, _ENCODERS))
    reason = f"An encoder makes no tokens: {workload.max_new_tokens:,} forward passes over the prompt will be timed."
    if workload.temperature or workload.chat:
        reason += " Sampling and chat do not concern it."
    found.append(Verdict("note", "model", reason, {}, _ENCODERS))
    return found


_NO_CHAT = (
    "This model's tokenizer has no chat template: it was not made for chats. Switch chat off, or take an instruct "
    "model, such as SmolLM2-135M-Instruct."
)
_TEMPLATES = "https://huggingface.co/docs/transformers/chat_templating"


def _of_the_whole(facts: ModelFacts, workload: Workload) -> list[Verdict]:
    found = []
    if facts.kind == "decoder" and workload.chat and not facts.chats:
        found.append(Verdict("blocked", "model", _NO_CHAT, {}, _TEMPLATES))
    if facts.kind == "encoder":
        found += _of_an_encoder(facts, workload)
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


def _too_big(
    facts: ModelFacts, memory: MemoryEstimate, machine: Machine, room: int, fix: dict[str, str], fixed: int
) -> Verdict:
    gib = 1 << 30
    where = "GPU memory" if machine.device == "cuda" else "memory"
    advice = "Take a smaller model, a shorter length or batch, or close other programs."
    if fix:
        advice = f"With {', '.join(f'{axis}={choice}' for axis, choice in fix.items())} it needs {fixed / gib:.1f} GiB."
    return Verdict(
        "blocked",
        "model",
        f"{facts.label} will need about {memory.total / gib:.1f} GiB of {where} ({memory.total:,} bytes: weights "
        f"{memory.weights:,}, KV cache {memory.kv:,}), and {room / gib:.1f} GiB "
        f"({room:,} bytes) are free. {advice}",
        fix,
        "backend/predict/memory.py",
    )
