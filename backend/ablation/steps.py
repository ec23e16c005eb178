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

    kind     base; alone: base and one change; all: base and every change; without: all changes but one; stair: base and
             the first changes
    change   as axis=choice: what it has more than the step that it is compared with, or less; "" for base and all
    choices  the arm
    against  index of the step that it is compared with: the base, all changes together, or the stair before
    """

    kind: Kind
    change: str
    choices: dict[str, str]
    against: int = 0

    @property
    def arm(self) -> str:
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

    def start_with(added: Sequence[tuple[str, str]]) -> dict[str, str]:
        return dict(make_config(model, {**start, **dict(added)}).choices)

    steps = [Step("base", "", start)]
    for kind in kinds:
        match kind:
            case "alone":
                steps += [Step("alone", f"{axis}={choice}", start_with([(axis, choice)])) for axis, choice in changes]
            case "without":
                every = len(steps)
                steps.append(Step("all", "", start_with(changes)))
                for axis, choice in changes:
                    others = [change for change in changes if change[0] != axis]
                    steps.append(Step("without", f"{axis}={choice}", start_with(others), every))
            case "stair":
                previous = 0
                for count, (axis, choice) in enumerate(changes, 1):
                    steps.append(Step("stair", f"{axis}={choice}", start_with(changes[:count]), previous))
                    previous = len(steps) - 1
            case _:
                raise InputError(f"There are no steps of kind {kind!r}. Choose of {', '.join(KINDS)}.")
    return steps


def _check(model: str, base: Mapping[str, str], changes: Sequence[tuple[str, str]]) -> None:
    if not 1 <= len(changes) <= MAX_CHANGES:
        raise InputError(f"An ablation has 1 to {MAX_CHANGES} changes, not {len(changes)}. Give each with --add.")
    axes = [axis for axis, _ in changes]
    if repeated := next((axis for axis in axes if axes.count(axis) > 1), None):
        raise InputError(f"{repeated} is changed twice. Run one ablation for each of its choices.")
    for axis, choice in changes:
        if make_config(model, {**base, axis: choice}) == make_config(model, base):
            raise InputError(f"{axis}={choice} changes nothing: the base has it already. Remove it.")
