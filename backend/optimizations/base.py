"""What an optimization is: an axis with named choices, its rules and its edit of the plan.

An axis is a subclass of `Optimization` in a file or folder of `axes/` of its own; those of many requests share one.
Controls, rules, remedies, the plan, scripts and the command line all come from that declaration; what was in effect is
told by the module of the same name in `worker/witness/`. Nothing else lists axes.
"""

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from tokendyno.backend.evidence import Level, Verdict
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.plan import Plan
from tokendyno.backend.script.parts import Script

Witness = Literal["weights", "kv"]
"""Bytes that answer for an axis: those of the weights, or those of the KV cache at the end."""

Wish = Literal["faster", "memory", "context", "start", "numerics", "reference"]
"""What a user wants who takes a choice."""

Values = Mapping[str, tuple[str, ...]]
"""The values that a choice takes: by key, what each may be, the default first."""

REPOSITORY = "org/name"
"""Among a choice's values: any repository of the Hub in its place, as org/name or org/name@revision."""

LAYER_OF = "org/name:Layer"
"""Among a choice's values: any repository of the Hub, with a layer that its package defines."""

_REPOSITORY = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}(@[\w.-]{1,64})?(:\w{1,64})?")


When = Callable[[Subject], bool]
Reason = str | Callable[[Subject], str]
Fix = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """If `when` holds for a subject, the choice gets a verdict with this reason.

    reason    a text, or what makes one for the subject
    becomes   with level "fallback": the choice that will run instead
    fix       changes that resolve it, as (axis, choice); None: of a fallback to take what will run instead, else the
              default of the rule's own axis
    """

    level: Level
    when: When
    reason: Reason
    source: str
    becomes: str = ""
    fix: Fix | None = None

    def says(self, subject: Subject) -> str:
        return self.reason if isinstance(self.reason, str) else self.reason(subject)


def blocked(when: When, reason: Reason, source: str, fix: Fix | None = None) -> Rule:
    """A rule that refuses the choice."""
    return Rule("blocked", when, reason, source, fix=fix)


def fallback(when: When, reason: Reason, source: str, becomes: str, fix: Fix | None = None) -> Rule:
    """A rule by which another choice runs instead."""
    return Rule("fallback", when, reason, source, becomes, fix)


def note(when: When, reason: Reason, source: str, fix: Fix = ()) -> Rule:
    """A rule that only says something."""
    return Rule("note", when, reason, source, fix=fix)


@dataclass(frozen=True, slots=True)
class Choice:
    """One setting of an axis: what a user should know before taking it, its rules, and facts that others ask for.

    title     what the page calls it, where that is not its name
    loss      its place among the changes that may make an arm fit in memory, least harmful first; None: not suggested.
              The tens say what is lost, the ones order what loses the same:
              0 nothing, 10 nothing (only experts), 20 time, 30 float32 precision, 40 down to 8 bits, 50 down to 4
    example   how it may be written, where its name alone says too little to run
    value     what the field of the plan becomes that the axis sets, where that is not its name
    tried_on_several_gpus  of rows of the table of what fits: whether a model was run with it, split over several GPUs
    """

    name: str
    summary: str
    rules: tuple[Rule, ...] = ()
    title: str = ""
    loss: int | None = None
    tried_on_several_gpus: bool = True
    values: Values = field(default_factory=dict)
    example: str = ""
    value: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", self.title or self.name)


def is_repository(text: str, kind: str = REPOSITORY) -> bool:
    """Whether a text has the form of a Hub repository, with a layer where `kind` is LAYER_OF."""
    return bool(_REPOSITORY.fullmatch(text)) and ".." not in text and (":" in text) == (kind == LAYER_OF)


def divided(written: str) -> tuple[str, dict[str, str]]:
    """A choice as it is written, `choice:key=value;key=value`: its name, and its values by key."""
    name, colon, rest = written.partition(":")
    if not colon:  # nearly always, and often asked
        return name, {}
    pairs = (value.partition("=") for value in rest.split(";") if value)
    return name, {key.strip(): value.strip() for key, _, value in pairs}


def joined(name: str, values: Mapping[str, str]) -> str:
    """A choice with its values as it is written, keys in order: the inverse of `divided`."""
    return name + ":" * bool(values) + ";".join(f"{key}={values[key]}" for key in sorted(values))


class Optimization:
    """Base of every axis.

    sets           the field of the plan that is the choice's `value`, such as "load.loading"; "": `edit` says more
    off            the choice with which nothing is done, so that there is nothing to prove; "" if there is none
    witness        measured bytes that must agree with the prediction if the choice is in effect; "" if none do
    order          place among the axes; those that edit the load come before those that edit the generation
    leading        told of two arms that share its choice, also where that is the default
    decoders_only  about generating tokens: an encoder takes nothing but the default
    many_requests  about requests that share the model (`tokendyno batch`): a single prompt has nothing to choose
    in_pages       of these, about the steps of continuous batching
    in_fit_table   its choices make up the rows of the table of what fits
    costs          by choice: what it costs besides, in a few words
    aliases        by choice, "" for the axis: what else it is called, such as the argument of transformers that sets it
    renamed        of these other names those that transformers 5.22 refuses, ignores or warns of, and what it takes
    elsewhere      what people look for here and find in another place: names, and where
    """

    name: str
    title: str
    summary: str
    default: str
    sets: str = ""
    off: str = ""
    witness: Witness | Literal[""] = ""
    choices: tuple[Choice, ...]
    order: int = 100
    leading: bool = False
    decoders_only: bool = False
    many_requests: bool = False
    in_pages: bool = False
    in_fit_table: bool = False
    wish: Wish = "faster"
    wishes: Mapping[str, Wish] = MappingProxyType({})
    costs: Mapping[str, str] = MappingProxyType({})
    aliases: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    renamed: Mapping[str, str] = MappingProxyType({})
    elsewhere: Mapping[tuple[str, ...], str] = MappingProxyType({})

    def matters(self, facts: ModelFacts) -> bool:
        """Whether this axis can change anything for this model."""
        return facts.kind == "decoder" or not self.decoders_only

    def choice(self, name: str) -> Choice:
        """The choice of that name, with values or without; KeyError if there is none."""
        return self._choices[divided(name)[0]]

    @functools.cached_property
    def _choices(self) -> dict[str, Choice]:
        return {choice.name: choice for choice in self.choices}

    def loss(self, name: str) -> int:
        """How much is lost with that choice, for sorting: 0 for the default, most for what is never suggested."""
        loss = 0 if name == self.default else self.choice(name).loss
        return 1_000 if loss is None else loss

    def fix_of(self, rule: Rule) -> dict[str, str]:
        return {self.name: rule.becomes or self.default} if rule.fix is None else dict(rule.fix)

    def verdicts(self, name: str, subject: Subject) -> list[Verdict]:
        """The verdicts of that choice's rules that hold for the subject. Where a refusal asks for another choice of the
        same axis, those that ask for changes of other axes are left out: they would not help."""
        verdicts = [
            Verdict(rule.level, self.name, rule.says(subject), self.fix_of(rule), rule.source, rule.becomes)
            for rule in self.choice(name).rules
            if rule.when(subject)
        ]
        if any(verdict.level == "blocked" and self.name in verdict.fix for verdict in verdicts):
            return [v for v in verdicts if v.level == "note" or (v.level == "blocked" and self.name in v.fix)]
        return verdicts

    def resolve(self, name: str, subject: Subject) -> str:
        """The choice that one such as "auto" stands for with this subject."""
        return name

    def details(self, plan: Plan, subject: Subject) -> str:
        """What a plan's choice comes to, as a sentence; "" where its name says all. `subject` has planned choices."""
        return ""

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        part, field = self.sets.split(".")
        name = self.default if name == self.resolve(self.default, subject) else name  # which needs no edit
        value = self.choice(name).value
        change = {"load": plan.with_load, "generate": plan.with_generate, "batch": plan.with_batch}[part]
        return change(**{field: name if value is None else value})

    def write(self, script: Script, plan: Plan) -> None:
        """Add this axis's part of the plan to the exported script; nothing if it is the default."""


class ManyRequests(Optimization):
    """Base of the axes about many requests: a single prompt has nothing to choose, and an encoder generates nothing."""

    decoders_only = True
    many_requests = True
