"""Which arms may answer a wish: combinations of choices, less what cannot be, what is the same, and what needs no run
to be ruled out."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from tokendyno.backend.ablation.advise.search import Arm
from tokendyno.backend.ablation.advise.wishes import SEEKS, SERVING, Question, Wish
from tokendyno.backend.ablation.steps import arm_text
from tokendyno.backend.arms.bundles import grant
from tokendyno.backend.arms.check import Checked, check, prompt_tokens, remedy_of
from tokendyno.backend.arms.parse import make_config, parse_arm
from tokendyno.backend.arms.presets import arm_presets
from tokendyno.backend.arms.usable import usable_choices
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.hardware import Machine, peak_rates
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations import all_axes, titles_text
from tokendyno.backend.optimizations.axes.prefill import SIZES as CHUNKS
from tokendyno.backend.predict.roofline import bound
from tokendyno.backend.predict.setup import setup_of
from tokendyno.backend.runs.texts import format_axes
from tokendyno.backend.units import bytes_text, seconds_text

MOST_CHANGES = 3
"""Of combinations that are listed; what presets combine, and what is near the best arms, comes besides."""

MOST_ARMS = 1_200

AS_IT_COMES = "As it comes"

LEAST_NAMED = 3
"""Choices that a preset must have here for an arm to be called by its title."""

SPARE = {"cpu": 1.15, "cuda": 1.05}
"""How far over a limit predicted memory must be for an arm to be ruled out without a run."""

KEEPS_QUALITY = {4: 0.8, 5: 0.4}
"""How likely a choice is to keep the quality, by what is lost with it: down to 8 bits, and to 4."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One arm. `recipe`: the planned choices that change number formats, "" where the base has the same; `bound_s`: the
    roofline bound of a step, None where no rate is known; `memory_bytes`: its predicted peak."""

    choices: Mapping[str, str]
    recipe: str
    bound_s: float | None
    memory_bytes: int
    title: str = ""
    compiles: bool = False

    @property
    def name(self) -> str:
        return arm_text(self.choices)


class Pruned(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arms that were ruled out for the same reason before a run. `arms`: a few of them, in words."""

    why: str
    count: int
    arms: list[str]


def by_reason(arms_by_reason: Mapping[str, Sequence[str]]) -> list[Pruned]:
    """Arms in words, by reason; the largest group first."""
    groups = [Pruned(why, len(arms), [*arms[:3]]) for why, arms in arms_by_reason.items()]
    return sorted(groups, key=lambda group: -group.count)


@dataclass(slots=True)
class Space:
    """What may be measured: `arms` by name, the base first. `pruned`: arms in words, by reason; `formats`: in words the
    number formats of arms without a recipe."""

    wish: Wish
    base: Candidate
    arms: dict[str, Candidate]
    pruned: dict[str, list[str]] = field(default_factory=dict)
    formats: str = "the model's own number formats"

    def search_arms(self, base_s: float, any_quality: bool) -> list[Arm]:
        """The arms as the search sees them. `base_s`: time per token of the base; every arm is expected to take as much
        longer than its bound as the base does."""
        return [self._arm(arm, base_s, any_quality) for arm in self.arms.values()]

    def _arm(self, arm: Candidate, base_s: float, any_quality: bool) -> Arm:
        over_s = max(0.0, base_s - (self.base.bound_s or base_s))
        there, here = (self._predicted(candidate, over_s) for candidate in (self.base, arm))
        changed = frozenset(f"{axis}={choice}" for axis, choice in arm.choices.items())
        chosen = [(axis, arm.choices[axis.name]) for axis in all_axes() if axis.name in arm.choices]
        serving = sum(axis.wishes.get(choice, axis.wish) == SERVING[self.wish] for axis, choice in chosen)
        keeps = [KEEPS_QUALITY.get(axis.loss(choice) // 10, 1.0) for axis, choice in chosen]
        chance = 1.0 if any_quality else math.prod(keeps)
        return Arm(arm.name, changed, math.log(here / there) if there and here else 0.0, serving, chance)

    def _predicted(self, arm: Candidate, over_s: float) -> float | None:
        if self.wish == "memory":
            return float(arm.memory_bytes)
        timed = self.wish in ("latency", "throughput") and arm.bound_s is not None
        return over_s + (arm.bound_s or 0.0) if timed else None


class Builder:
    """Makes a space, and widens it. InputError where the model cannot run at all."""

    def __init__(self, bench: Bench, question: Question, machine: Machine | None = None) -> None:
        self._model, self._work = question.model, question.work
        self._limits, self._traffic = question.limits, question.traffic
        self.machine, self._freeable_bytes = machine or bench.machine(), 0 if machine else bench.freeable_bytes
        self.facts: ModelFacts = bench.facts(question.model)
        self._known = set[bytes]()
        self._smallest: Candidate | None = None  # of those that are over a limit
        self._start = {"batching": "static"} if self._traffic is not None else {}  # no arm serves requests one by one
        bundles = [preset for preset in arm_presets() if preset.bundle]
        granted = [(one.title, grant(one, self.facts, self.machine, self._work).choices) for one in bundles]
        self._named = sorted((one for one in granted if len(one[1]) >= LEAST_NAMED), key=lambda one: -len(one[1]))
        base = self._base()
        self.space = Space(question.wish, base, {base.name: base})
        if format_axes(self.checked(self._start).planned, self._base_planned):
            self.space.formats = f"the number formats with which it fits ({base.title})"
        self._tried = {base.name}
        self._changes = self._moves()
        for choices in itertools.chain(self._presets(), _combined(self._changes)):
            if len(self._tried) >= MOST_ARMS:
                break
            self._offer({**base.choices, **choices})  # what it needs to fit
            self._offer(choices)
        self._require_room()

    def _require_room(self) -> None:
        """InputError where the memory that is allowed is less than the smallest arm is predicted to need."""
        most, base = self._limits.memory_bytes, self.space.base
        if most is None or len(self.space.arms) > 1 or base.memory_bytes <= most:
            return
        least = self._smallest or base
        size, allowed = (" ".join(bytes_text(value)) for value in (least.memory_bytes, most))
        raise InputError(
            f"Nothing keeps to {allowed}: the least that {self.facts.label} is predicted to need here is {size} "
            f"({least.title}). Allow that, or choose a smaller model."
        )

    def widen(self, best: Candidate) -> int:
        """Add what is one change away from a good arm; how many arms that are."""
        before = len(self.space.arms)
        for move in self._changes:
            self._offer({**best.choices, **move})
        for axis in best.choices:
            self._offer({name: choice for name, choice in best.choices.items() if name != axis})
        return len(self.space.arms) - before

    def add(self, name: str) -> None:
        """Add an arm that an earlier call came to by widening."""
        if name not in self.space.arms:
            self._offer(dict(parse_arm(self._model, name).choices))

    # --- one arm ----------------------------------------------------------------------------------

    def _base(self) -> Candidate:
        """The model as it comes, or with the least harmful changes with which it fits. InputError, of the arm that
        needs least, where none does."""
        choices, changed = dict(make_config(self._model, self._start).choices), ""
        checked = self.checked(choices)
        if checked.needed_bytes > checked.room_bytes:
            requested, free = checked.requested, self._freeable_bytes
            change, *_ = remedy_of(requested, self.facts, self.machine, self._work, free, self._traffic)
            choices = dict(make_config(self._model, {**self._start, **change}).choices)
            checked, changed = self.checked(choices), titles_text(change) if change else ""
        if checked.blocked:
            raise InputError(f"Even with {changed}, {checked.refusal()}" if changed else checked.refusal())
        self._known.add(msgspec.json.encode(checked.plan))
        self._base_planned = checked.planned
        return self._candidate(choices, checked)

    def checked(self, choices: Mapping[str, str]) -> Checked:
        config = make_config(self._model, choices)
        return check(config, self.facts, self.machine, self._work, self._freeable_bytes, self._traffic, remedy=False)

    def _candidate(self, choices: Mapping[str, str], checked: Checked) -> Candidate:
        rates = peak_rates.of_machine(self.machine, checked.plan.load.dtype)
        length = prompt_tokens(self._work) + self._work.max_new_tokens // 2
        setup = replace(setup_of(checked.plan, self.machine), alike=self._work.temperature == 0)
        step = rates and bound(self.facts, setup, length, self._work.batch_size, rates)
        compiles = bool(checked.plan.generate.compile_mode)
        planned = checked.planned
        recipe = arm_text({axis: planned[axis] for axis in format_axes(self._base_planned, planned)})
        seconds, title = step.seconds if step else None, self._title(choices)
        return Candidate(dict(choices), recipe, seconds, checked.needed_bytes, title, compiles)

    def _title(self, choices: Mapping[str, str]) -> str:
        """An arm in words: the title of a preset that it contains, and the choices beside it; else all of them."""
        for title, own in self._named:
            if own.items() <= choices.items():
                beside = {axis: choice for axis, choice in choices.items() if axis not in own}
                return f"{title} + {titles_text(beside)}" if beside else title
        dtype = self._base_planned["dtype"]
        as_it_comes = AS_IT_COMES if dtype == self.facts.dtype else f"{AS_IT_COMES} but in {dtype}"
        return titles_text(choices) if choices else as_it_comes

    def _offer(self, choices: Mapping[str, str]) -> None:
        """Take an arm into the space, or note why it is ruled out; nothing where it was offered before."""
        try:
            choices = dict(make_config(self._model, {**self._start, **choices}).choices)
        except InputError:
            return
        name, title = arm_text(choices), self._title(choices)
        if name in self._tried:
            return
        self._tried.add(name)
        if prompt_tokens(self._work) <= CHUNKS.get(choices.get("prefill", ""), 0):
            self._rule_out("The prompt is no longer than one chunk.", title)
            return
        checked = self.checked(choices)
        plan = msgspec.json.encode(checked.plan)
        if checked.plan.load.parallel.ranks > 1 and checked.plan.load.device == "cpu":
            self._rule_out("Several processes on the cores of one CPU add no device.", title)
        elif checked.too_large:
            self._rule_out(f"Needs more memory than is free ({' '.join(bytes_text(checked.room_bytes))}).", title)
        elif checked.blocked:
            self._rule_out(_first_sentence(checked.blocked[0].reason), title)
        elif why := next((v.reason for v in checked.verdicts if v.level == "fallback" and v.axis in choices), ""):
            self._rule_out(_first_sentence(why), title)  # as it would run it is another arm
        elif plan in self._known:
            self._rule_out("Does the same here as another arm.", title)
        else:
            self._known.add(plan)
            arm = self._candidate(choices, checked)
            if why := self._over(arm):
                self._rule_out(why, title)
                if self._smallest is None or arm.memory_bytes < self._smallest.memory_bytes:
                    self._smallest = arm
            else:
                self.space.arms[arm.name] = arm

    def _over(self, arm: Candidate) -> str:
        """The limit that an arm breaks by what is predicted of it; "" where only a run tells."""
        limits, spare = self._limits, SPARE["cuda" if self.machine.device == "cuda" else "cpu"]
        if limits.memory_bytes is not None and arm.memory_bytes > spare * limits.memory_bytes:
            return f"Needs more than {' '.join(bytes_text(limits.memory_bytes))} by its prediction."
        if limits.latency_s is not None and arm.bound_s is not None and arm.bound_s > limits.latency_s:
            return f"Its roofline bound is over {' '.join(seconds_text(limits.latency_s))} a token."
        return ""

    def _rule_out(self, why: str, title: str) -> None:
        self.space.pruned.setdefault(why, []).append(title)

    # --- many -------------------------------------------------------------------------------------

    def _moves(self) -> list[dict[str, str]]:
        """Each choice that serves the wish, with the choices that it needs; choices that cannot be used here are ruled
        out."""
        axes = {axis.name: axis for axis in all_axes()}
        moves, many_requests, seeks = [], self._traffic is not None, SEEKS[self.space.wish]
        for row in usable_choices(self.facts, self.machine):
            axis = axes[row.axis]
            serves = axis.wishes.get(row.choice, axis.wish)
            if (axis.many_requests and not many_requests) or not axis.matters(self.facts) or serves not in seeks:
                continue
            if row.choice in (axis.default, axis.off) or axis.choice(row.choice).example:  # which names nothing to run
                continue
            title = titles_text({row.axis: row.choice})
            if not row.usable:
                self._rule_out(_first_sentence(row.why), title)
            elif axis.name == "speculation" and not self._work.prompt.strip() and not many_requests:
                self._rule_out("Its gain depends on the text: give a prompt.", title)
            else:
                moves.append({**row.needs, row.axis: row.choice})
        return moves

    def _presets(self) -> Iterator[dict[str, str]]:
        """What presets of several choices come to here, also beside what the base needs to fit and other choices in its
        place; and the same without each one of them."""
        needed = self.space.base.choices
        others = [{**needed, **move} for move in self._changes if move.keys() <= needed.keys()]
        for preset in arm_presets():
            for beside in ({}, needed, *(other for other in others if not self.checked(other).blocked)):
                choices = grant(preset, self.facts, self.machine, self._work, beside).choices
                if len(choices) > MOST_CHANGES or preset.bundle:
                    yield dict(choices)
                    yield from ({name: choices[name] for name in choices if name != axis} for axis in choices)


def _combined(moves: list[dict[str, str]]) -> Iterator[dict[str, str]]:
    """One change, then two together, then three, where they do not contradict each other."""
    for count in range(1, MOST_CHANGES + 1):
        for chosen in itertools.combinations(moves, count):
            combined: dict[str, str] = {}
            if all(combined.setdefault(axis, choice) == choice for move in chosen for axis, choice in move.items()):
                yield combined


def _first_sentence(text: str) -> str:
    head, stop, _ = text.partition(". ")
    return f"{head}." if stop else text
