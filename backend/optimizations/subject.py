"""What rules look at, and a rule."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tokendyno.backend.evidence import Level
from tokendyno.backend.hardware import Machine

if TYPE_CHECKING:
    from tokendyno.backend.models import ModelFacts


@dataclass(frozen=True, slots=True)
class Subject:
    """What rules look at: the model, the machine, the choice of every axis and the batch.

    `choices` names every axis, so that no rule needs to know another axis's default: build one with
    `tokendyno.backend.optimizations.subject_of`. `values`: by axis, those of its choice, by key.
    """

    facts: "ModelFacts"
    machine: Machine
    choices: Mapping[str, str]
    batch_size: int
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def decoder(self) -> bool:
        return self.facts.kind == "decoder"

    @property
    def cuda(self) -> bool:
        return self.machine.device == "cuda"


When = Callable[[Subject], bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """If `when` holds for a subject, the choice gets a verdict with this reason.

    becomes   with level "fallback": the choice that will run instead
    fix       changes that resolve it, as (axis, choice)
    """

    level: Level
    when: When
    reason: str
    source: str
    becomes: str = ""
    fix: tuple[tuple[str, str], ...] = ()


def blocked(when: When, reason: str, source: str, fix: tuple[tuple[str, str], ...]) -> Rule:
    """A rule that refuses the choice."""
    return Rule("blocked", when, reason, source, fix=fix)


def fallback(when: When, reason: str, source: str, becomes: str, fix: tuple[tuple[str, str], ...] = ()) -> Rule:
    """A rule by which another choice runs instead."""
    return Rule("fallback", when, reason, source, becomes, fix)


def note(when: When, reason: str, source: str, fix: tuple[tuple[str, str], ...] = ()) -> Rule:
    """A rule that only says something."""
    return Rule("note", when, reason, source, fix=fix)
