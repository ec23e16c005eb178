"""What an optimization is: an axis with named choices, its rules, its edit of the plan and its proof.

One axis is one file in this folder, holding one module-level `AXIS`. Controls, rules, planning, the
command line, the ledger and the contract tests all come from that declaration; the core names no axis.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from backend.hardware import Machine
from backend.messages import Finding
from backend.plan import Plan
from backend.records import Level, Verdict
from backend.script import Script

if TYPE_CHECKING:
    from backend.models import ModelFacts


@dataclass(frozen=True, slots=True)
class Subject:
    """What rules look at: the model's facts, the machine, every axis's choice in this arm, and the batch."""

    facts: "ModelFacts"
    machine: Machine
    choices: Mapping[str, str]
    batch_size: int = 1


@dataclass(frozen=True, slots=True)
class Rule:
    """If `when` holds for a subject, the choice gets a verdict with this reason.

    becomes   with level "fallback": the choice that will run instead
    fix       axis -> choice that settles it
    source    a URL, or the experiment that showed it
    """

    level: Level
    when: Callable[[Subject], bool]
    reason: str
    source: str
    becomes: str = ""
    fix: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """One setting of an axis, with what a user should know before taking it."""

    name: str
    title: str
    summary: str
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """What a profiler saw while a few tokens were made once more, in the same way as in the measured run.

    ops      operators by name, such as "aten::mm", and "Torch-Compiled Region: 0/0" for each call of a compiled graph
    kernels  kernels on the GPU by name; empty on a CPU
    runtime  calls of the CUDA runtime by name, such as "cudaGraphLaunch"; empty on a CPU
    steps    tokens that were made
    """

    ops: Counter[str]
    kernels: Counter[str]
    runtime: Counter[str]
    steps: int

    def matching(self, *parts: str) -> Counter[str]:
        """The operators and kernels whose name contains one of `parts`, whatever the case."""
        both = self.ops + self.kernels
        return Counter({n: k for n, k in both.items() if any(part.lower() in n.lower() for part in parts)})


NO_TRACE = Trace(Counter(), Counter(), Counter(), 0)


@dataclass(slots=True)
class Seen:
    """What the worker lets an axis look at after a run, to find out what was in effect.

    model    the loaded `PreTrainedModel`
    cache    the `Cache` that the measured run filled; None for an encoder
    plan     what was to be done: for context, never as proof
    before   what `baseline` of the same axis returned before warm-up
    trace    the profile of a few more tokens, taken when it is first asked for
    counts   what the worker counted during load, warm-up and run, by name: never a setting, always an effect
    """

    model: Any
    cache: Any
    plan: Plan
    before: Any = None
    trace: Callable[[], Trace] = lambda: NO_TRACE
    counts: Mapping[str, float] = field(default_factory=dict)


class Optimization(ABC):
    """Base of every axis. `default` is a choice that leaves the plan unchanged."""

    name: str
    title: str
    summary: str
    default: str
    choices: tuple[Choice, ...]
    order: int = 100
    leading: bool = False  # shown at once on the page; the rest is folded unless it is set
    decoders_only: bool = False  # it is about making tokens: with an encoder any choice but the default is refused

    def matters(self, facts: "ModelFacts") -> bool:
        """Whether this axis can change anything with this kind of model (experts: only where there are some)."""
        return facts.kind == "decoder" or not self.decoders_only

    def choice(self, name: str) -> Choice:
        """The choice of that name; KeyError if there is none."""
        for choice in self.choices:
            if choice.name == name:
                return choice
        raise KeyError(name)

    def verdicts(self, name: str, subject: Subject) -> list[Verdict]:
        """Every rule of that choice which holds for the subject."""
        return [
            Verdict(rule.level, self.name, rule.reason, dict(rule.fix), rule.source, rule.becomes)
            for rule in self.choice(name).rules
            if rule.when(subject)
        ]

    def resolve(self, name: str, subject: Subject) -> str:
        """The choice that a choice such as "auto" stands for with this subject."""
        return name

    @abstractmethod
    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        """The plan with that choice in it."""

    def write(self, script: Script, plan: Plan) -> None:  # noqa: B027
        """Put what this axis did to the plan into the exported script; nothing where the plan has its default."""

    def baseline(self, model: Any) -> Any:
        """Taken in the worker before warm-up, for axes whose effect is a difference. Imports torch lazily."""
        return None

    @abstractmethod
    def find(self, seen: Seen) -> Finding:
        """Find out, from effects and not from settings, which choice was in effect. Imports torch lazily."""

    def verify(self, name: str, seen: Seen) -> bool:
        """True when that choice is in effect, false when it is not."""
        return self.find(seen).effective == name
