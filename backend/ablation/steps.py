"""The steps of an ablation: which arms are run, and what each is compared with."""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.errors import InputError

Kind = Literal["base", "alone", "all", "without", "stair"]
KINDS: tuple[Kind, ...] = ("alone", "without", "stair")
MAX_CHANGES = 12


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One arm in one role. Several steps may be the same arm, which is then run once a round.

    kind     base; alone: base and one change; all: base and every change; without: all of them but one; stair: base and
             the first changes
    change   what is added to the step that it is compared with, or left out of it, as axis=choice; "" for the base
    choices  the arm
    against  index of the step that it is compared with: the base, all changes together, or the stair before
    """

    kind: Kind
    change: str
    choices: dict[str, str]
    against: int = 0

    @property
    def arm(self) -> str:
        """The arm as it is written; equal for steps that are the same arm."""
        return arm_text(self.choices)


def arm_text(choices: Mapping[str, str]) -> str:
    """Choices as one text, in a fixed order."""
    return ",".join(f"{axis}={choice}" for axis, choice in sorted(choices.items()))


def plan_steps(
    model: str, base: Mapping[str, str], changes: Sequence[tuple[str, str]], kinds: Sequence[str]
) -> list[Step]:
    """The base, then each kind of step in the order given. InputError where a change is none, or there are too many."""
    _check(model, base, changes)
    start = dict(make_config(model, base).choices)
    every = _with(model, start, changes)
    steps = [Step("base", "", start)]
    for kind in kinds:
        match kind:
            case "alone":
                for axis, choice in changes:
                    steps.append(Step("alone", f"{axis}={choice}", _with(model, start, [(axis, choice)])))
            case "without":
                whole = len(steps)
                steps.append(Step("all", "", every))
                for left in changes:
                    rest = [change for change in changes if change != left]
                    steps.append(Step("without", f"{left[0]}={left[1]}", _with(model, start, rest), whole))
            case "stair":
                before = 0
                for count, (axis, choice) in enumerate(changes, 1):
                    steps.append(Step("stair", f"{axis}={choice}", _with(model, start, changes[:count]), before))
                    before = len(steps) - 1
            case _:
                raise InputError(f"There are no steps of kind {kind!r}. Choose of {', '.join(KINDS)}.")
    return steps


def _with(model: str, base: Mapping[str, str], changes: Sequence[tuple[str, str]]) -> dict[str, str]:
    return dict(make_config(model, {**base, **dict(changes)}).choices)


def _check(model: str, base: Mapping[str, str], changes: Sequence[tuple[str, str]]) -> None:
    if not 1 <= len(changes) <= MAX_CHANGES:
        raise InputError(f"An ablation has 1 to {MAX_CHANGES} changes, not {len(changes)}. Give each with --add.")
    axes = [axis for axis, _ in changes]
    if twice := next((axis for axis in axes if axes.count(axis) > 1), None):
        raise InputError(f"{twice} is changed twice. Run one ablation for each of its choices.")
    for axis, choice in changes:
        if make_config(model, {**base, axis: choice}) == make_config(model, base):
            raise InputError(f"{axis}={choice} changes nothing: the base has it already. Remove it.")
