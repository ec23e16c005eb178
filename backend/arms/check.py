"""Checks an arm: the verdicts of every axis, the plan, and the predicted memory.

A request is never changed. A fallback is a verdict that names the choice that will run instead; a blocked arm has
reasons and fixes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from msgspec import structs

from tokendyno.backend.arms.reasoning import refused
from tokendyno.backend.arms.remedies import Changes, least_harm, ways
from tokendyno.backend.arms.requests import of_arm, of_traffic, with_pages
from tokendyno.backend.config import Config, Workload
from tokendyno.backend.errors import InputError
from tokendyno.backend.evidence import Verdict
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.models.tokens import count_tokens
from tokendyno.backend.optimizations import Optimization, all_axes, axis_title, defaults, subject_of
from tokendyno.backend.optimizations.base import divided, joined
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.predict.lengths import cache_places, rounded
from tokendyno.backend.predict.memory import MemoryEstimate, peak_bytes
from tokendyno.backend.predict.setup import setup_of
from tokendyno.backend.predict.shape import Shape
from tokendyno.backend.predict.weights import itemsize
from tokendyno.backend.traffic import Traffic

ELSEWHERE = "machine"
"""The axis of a verdict that says what is taken for granted of a machine that is not here."""


@dataclass(frozen=True, slots=True)
class Checked:
    """An arm after the rules. `room_bytes`: free memory of its device, with what ending workers would free."""

    facts: ModelFacts
    workload: Workload
    requested: Mapping[str, str]
    planned: Mapping[str, str]
    verdicts: tuple[Verdict, ...]
    plan: Plan
    itemsize: int
    memory: MemoryEstimate
    room_bytes: int
    details: Mapping[str, str]

    @property
    def needed_bytes(self) -> int:
        """Bytes needed of one device: by each rank of a GPU of its own, by all ranks of the CPU that they share."""
        return needed_bytes(self.memory, self.plan)

    @property
    def blocked(self) -> tuple[Verdict, ...]:
        return tuple(v for v in self.verdicts if v.level == "blocked")

    @property
    def too_large(self) -> bool:
        """Whether it is refused for its memory alone."""
        return len(self.blocked) == 1 and self.needed_bytes > self.room_bytes

    @property
    def replaced(self) -> list[str]:
        """Titles of the axes whose choice gives way to another, by a rule."""
        axes = dict.fromkeys(v.axis for v in self.verdicts if v.level == "fallback")
        return [axis_title(axis) for axis in axes if self.planned[axis] != self.requested[axis]]

    def sentence(self, where: str = "") -> str:
        """Whether the arm would run. `where`: on which machine, "" for this one."""
        if self.blocked:
            return f"This arm would be refused{where}."
        but = f", but not as requested: {', '.join(self.replaced)}" if self.replaced else ""
        return f"This arm would run{where}{but}."

    def refused(self, reason: str) -> "Checked":
        """The arm with one more reason why it cannot run, one of its model; unchanged for ""."""
        if not reason:
            return self
        return replace(self, verdicts=(Verdict("blocked", "model", reason), *self.verdicts))

    @property
    def assumed(self) -> str:
        """What is taken for granted of a machine that is not here; "" of this one."""
        return next((verdict.reason for verdict in self.verdicts if verdict.axis == ELSEWHERE), "")

    def of(self, source: ModelSource) -> "Checked":
        """The arm with its files from `source`."""
        load = structs.replace(self.plan.load, source=source)
        return replace(self, plan=structs.replace(self.plan, load=load))

    def refusal(self, arm: str = "") -> str:
        """Every reason why this arm cannot run, each with its fix; "" if it can. `arm` is its name in a comparison."""
        reasons = dict[str, str]()
        for verdict in self.blocked:
            fix = ", ".join(f"{axis}={choice}" for axis, choice in verdict.fix.items())
            reasons.setdefault(verdict.reason, f" Set {fix}." if fix else "")
        refusal = " ".join(reason + fix for reason, fix in reasons.items())
        return f"Arm {arm}: {refusal}" if arm and refusal else refusal

    def require_runnable(self, arm: str = "") -> None:
        """InputError with the refusal of this arm, if there is one."""
        if reason := self.refusal(arm):
            raise InputError(reason)


def check(
    config: Config,
    facts: ModelFacts,
    machine: Machine,
    workload: Workload,
    freeable_bytes: int = 0,
    traffic: Traffic | None = None,
    remedy: bool = True,
) -> Checked:
    """Check an arm and plan it. `freeable_bytes`: memory that the engine's workers would free; `traffic`: many
    requests, for which `workload` holds the longest lengths; `remedy`: look for the change with which a model that is
    too large fits, which takes ten times as long as all else."""
    requested = defaults() | dict(config.choices)
    verdicts, planned, plan = _plan(requested, facts, machine, workload.batch_size)
    verdicts = [
        structs.replace(v, fix=_usable_fix(v, requested, facts, machine, workload.batch_size)) if v.fix else v
        for v in verdicts
    ]
    workload, traffic = of_arm(workload, traffic, plan)
    memory = _predicted_memory(plan, facts, machine, workload, traffic)
    room = _free_bytes(machine, plan) + freeable_bytes
    if traffic is None:
        verdicts += _of_workload(facts, workload)
    else:
        verdicts += of_traffic(plan, facts, traffic, memory, room)
    needed = needed_bytes(memory, plan)
    if needed > room and not any(verdict.axis == "pages" for verdict in verdicts):
        some = (requested, facts, machine, workload, freeable_bytes, traffic)
        fix, fixed, fits = remedy_of(*some) if remedy else ({}, 0, False)
        verdicts.append(_too_large(facts, memory, needed, machine, room, fix if fits else {}, fixed))
    if machine.assumed:
        verdicts.append(Verdict("note", ELSEWHERE, machine.assumed, {}, "presets/gpus.toml"))
    subject = subject_of(facts, machine, planned, workload.batch_size)
    details = {axis.name: text for axis in all_axes() if (text := axis.details(plan, subject))}
    size = itemsize(facts, plan.load.dtype)
    return Checked(facts, workload, requested, planned, tuple(verdicts), plan, size, memory, room, details)


def _plan(
    requested: Mapping[str, str], facts: ModelFacts, machine: Machine, batch_size: int
) -> tuple[list[Verdict], dict[str, str], Plan]:
    """The verdicts of every axis, the choice each one will run, and the plan."""
    subject = subject_of(facts, machine, requested, batch_size)
    verdicts: list[Verdict] = []
    planned: dict[str, str] = {}
    routed = facts.experts_per_token if facts.experts else 0
    plan = Plan(LoadPlan(facts.source, device=machine.device), routed=routed)
    for axis in all_axes():
        choice = requested[axis.name]
        if axis.decoders_only and facts.kind == "encoder":
            found = _not_applicable(axis, choice, facts)
        else:
            found = axis.verdicts(choice, subject)
        verdicts += found
        if becomes := next((v.becomes for v in found if v.level == "fallback"), ""):
            choice = _with_values(axis, becomes, choice)
        planned[axis.name] = axis.resolve(choice, subject)
        plan = axis.edit(plan, planned[axis.name], subject)
    return verdicts, planned, plan


def _usable_fix(
    verdict: Verdict, requested: Mapping[str, str], facts: ModelFacts, machine: Machine, batch_size: int
) -> dict[str, str]:
    """A refusal's fix that is not refused itself: its own, else the defaults of its axes, else the default
    of the refused axis, else none."""
    if verdict.level != "blocked":
        return verdict.fix
    default, axes = defaults(), {axis.name: axis for axis in all_axes()}
    for fix in (verdict.fix, {axis: default[axis] for axis in verdict.fix}, {verdict.axis: default[verdict.axis]}):
        choices = {**requested, **fix}
        subject = subject_of(facts, machine, choices, batch_size)
        then = [v for name in {verdict.axis, *fix} for v in axes[name].verdicts(choices[name], subject)]
        refusals = (v for v in then if v.level == "blocked" and v.axis in fix and (v.axis in v.fix or not v.fix))
        if verdict not in then and not any(refusals):
            return fix
    return {}


def _with_values(axis: Optimization, choice: str, requested: str) -> str:
    """A choice that runs in place of the requested one, with those of its values that it takes too."""
    values, takes = divided(requested)[1], axis.choice(choice).values
    return joined(choice, {key: value for key, value in values.items() if value in takes.get(key, ())})


def _predicted_memory(
    plan: Plan, facts: ModelFacts, machine: Machine, workload: Workload, traffic: Traffic | None
) -> MemoryEstimate:
    shapes, prompt, new_tokens = plan.generate.shapes, prompt_tokens(workload), workload.max_new_tokens
    setup = replace(setup_of(plan, machine), max_places=cache_places(shapes, prompt, new_tokens))
    memory = peak_bytes(Shape(facts, setup, rounded(shapes, prompt), new_tokens, workload.batch_size))
    if traffic is not None and plan.generate.batch.continuous and facts.kind == "decoder":
        return with_pages(memory, plan, facts, machine, traffic)
    return memory


def remedy_of(
    requested: Mapping[str, str],
    facts: ModelFacts,
    machine: Machine,
    workload: Workload,
    freeable_bytes: int = 0,
    traffic: Traffic | None = None,
) -> tuple[dict[str, str], int, bool]:
    """The least harmful changes with which an arm fits without being refused itself, what it then needs, and True;
    False where none do, with the change with which it needs least. `requested` names every axis."""
    before = _plan(requested, facts, machine, workload.batch_size)[0]

    def sizes(changes: Changes) -> tuple[int, int] | None:
        """What is needed and what is free with these changes; None where one of them would not run."""
        verdicts, _, plan = _plan({**requested, **changes}, facts, machine, workload.batch_size)
        if any(v.level in ("blocked", "fallback") and v not in before for v in verdicts):
            return None
        memory = _predicted_memory(plan, facts, machine, *of_arm(workload, traffic, plan))
        return needed_bytes(memory, plan), _free_bytes(machine, plan) + freeable_bytes

    changes = least_harm(facts, ways(len(machine.gpus)), lambda some: (at := sizes(some)) and at[0] - at[1]) or {}
    needed, free = sizes(changes) or (0, 0)
    return dict(changes), needed, needed <= free


def _free_bytes(machine: Machine, plan: Plan) -> int:
    """Free memory of the device in use, or of the fullest one of several."""
    gpus = machine.gpus[: max(plan.load.parallel.ranks, plan.load.parallel.devices)]
    return min([machine.free_device_bytes, *(gpu.free_bytes for gpu in gpus)])


def needed_bytes(memory: MemoryEstimate, plan: Plan) -> int:
    """Bytes that an arm needs of one device: of the fullest, where its layers are spread over several."""
    parallel = plan.load.parallel
    return max(memory.total, memory.fullest) * (parallel.ranks // parallel.hosts if plan.load.device == "cpu" else 1)


def prompt_tokens(workload: Workload) -> int:
    """Tokens of the prompt, with a system message, estimated without a tokenizer at 3.5 bytes per token."""
    return workload.prompt_tokens or max(1, round(len((workload.system + workload.prompt).encode()) / 3.5))


def _exact_tokens(facts: ModelFacts, workload: Workload) -> int:
    """Tokens of the prompt, counted where it may be too long; 0 where that is not known before the model is loaded."""
    room = facts.max_positions - (0 if facts.kind == "encoder" else workload.max_new_tokens)
    if workload.prompt_tokens or (2 * prompt_tokens(workload) < room and not facts.random):
        return workload.prompt_tokens
    return count_tokens(facts.source, workload.system * workload.chat + workload.prompt) or 0


_ENCODERS = "backend/worker/runners/forward.py: of an encoder, forward passes are measured"
_NO_TOKENS = "{}: it generates no tokens and has no KV cache, so {} does not apply."


def _not_applicable(axis: Optimization, choice: str, facts: ModelFacts) -> list[Verdict]:
    if choice == axis.default:
        return []
    reason = _NO_TOKENS.format(facts.no_tokens, axis.title)
    return [Verdict("blocked", axis.name, reason, {axis.name: axis.default}, _ENCODERS)]


def _of_encoder(facts: ModelFacts, workload: Workload) -> list[Verdict]:
    verdicts = []
    if (prompt := _exact_tokens(facts, workload)) > facts.max_positions:
        reason = (
            f"{prompt:,} prompt tokens exceed the {facts.max_positions:,} positions of "
            f"{facts.label}. Use fewer prompt tokens."
        )
        verdicts.append(Verdict("blocked", "model", reason, {}, _ENCODERS))
    passes = f"{workload.max_new_tokens:,} forward passes over the prompt are timed"
    reason = f"An encoder generates no tokens: {passes} instead."
    if facts.source.forward:
        reason = (
            f"{passes}, model(**inputs, use_cache=False), each with the logits of all positions; nothing is generated."
        )
    if workload.temperature or workload.chat:
        reason += " Sampling and chat settings have no effect."
    verdicts.append(Verdict("note", "model", reason, {}, _ENCODERS))
    return verdicts


_NO_CHAT = (
    "This model's tokenizer has no chat template. Turn chat off, or use an instruct model such as "
    "SmolLM2-135M-Instruct."
)
_TEMPLATES = "https://huggingface.co/docs/transformers/chat_templating"


def _of_workload(facts: ModelFacts, workload: Workload) -> list[Verdict]:
    if facts.kind == "encoder":
        return _of_encoder(facts, workload)
    verdicts = []
    if workload.chat and not facts.has_chat_template:
        verdicts.append(Verdict("blocked", "model", _NO_CHAT, {}, _TEMPLATES))
    elif facts.template_variables is not None:
        refusal = refused(workload.reasoning_effort, facts.template_variables)
        verdicts += [Verdict("blocked", "model", refusal, {}, _TEMPLATES)] if refusal else []
    prompt, new, positions = _exact_tokens(facts, workload), workload.max_new_tokens, facts.max_positions
    reason = ""
    if new >= positions:
        reason = (
            f"{facts.label} has {positions:,} positions: {new:,} new tokens leave no room for a prompt. Use fewer new "
            "tokens."
        )
    elif prompt + new > positions:
        reason = (
            f"{prompt:,} prompt tokens and {new:,} new tokens are {prompt + new:,}, but {facts.label} has "
            f"{positions:,} positions. Use fewer tokens."
        )
    return [*verdicts, *([Verdict("blocked", "model", reason)] if reason else [])]


def _too_large(
    facts: ModelFacts, memory: MemoryEstimate, needed: int, machine: Machine, room: int, fix: dict[str, str], fixed: int
) -> Verdict:
    gib = 1 << 30
    where = "GPU memory" if machine.device == "cuda" else "memory"
    each = " on the GPUs together" if memory.fullest else " in each rank" if needed > memory.total else ""
    other = "other GPUs: Fit (tokendyno fit) says which" if machine.assumed else "close other programs"
    stays = f"{facts.experts_stay} " if facts.experts_stay else ""
    advice = f"{stays}Use a smaller model, fewer tokens or a smaller batch, or {other}."
    if fix:
        advice = f"With {', '.join(f'{axis}={choice}' for axis, choice in fix.items())} it needs {fixed / gib:.1f} GiB."
    return Verdict(
        "blocked",
        "model",
        f"{facts.label} needs about {needed / gib:,.1f} GiB of {where} ({needed:,} bytes: weights "
        f"{memory.weights:,}, KV cache {memory.kv:,}, workspace {memory.workspace:,}, the rest runtime{each}), but "
        f"only {room / gib:.1f} GiB ({room:,} bytes) are free. {advice}",
        fix,
        "backend/predict/memory.py",
    )
