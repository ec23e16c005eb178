"""Whether two arms differ in what was chosen and in nothing else, before they run, and what would make it so."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from tokendyno.backend.arms.check import Checked
from tokendyno.backend.errors import InputError
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations import all_axes, apart, axis_title, choice_title, unasked
from tokendyno.backend.views.comparison import lowered
from tokendyno.backend.views.verdict import listed

Changes = dict[str, dict[str, str]]
"""Choices to be set, by axis, of each arm."""

Check = Callable[[Changes], Mapping[str, Checked]]
"""The arms with some choices changed; InputError where that cannot be."""

IDENTICAL = "A and B are identical: any difference between them is noise."
SAME_PLAN = "A and B come to the same plan here: any difference between them is noise."


class Fairness(msgspec.Struct, frozen=True):
    """What stands above the button that runs two arms. `state` is "unasked" where the arms also differ in what
    nobody chose, and "equal" where they differ in nothing."""

    state: Literal["fair", "unasked", "equal"]
    badge: str
    sentence: str
    same: str = ""
    fix: Changes = {}
    fix_text: str = ""


def fairness(arms: Mapping[str, Checked], facts: ModelFacts, check: Check, warm: Sequence[str]) -> Fairness | None:
    """Whether a comparison is fair; None where an arm cannot run. `warm`: arms whose worker has its model already."""
    a, b = arms.values()
    if a.planned == b.planned:
        return Fairness("equal", "", IDENTICAL if a.requested == b.requested else SAME_PLAN)
    if a.blocked or b.blocked:
        return None
    same = _same(arms, facts, warm)
    fix, mended = _fix(arms, check)
    chosen = [lowered(axis_title(axis)) for axis in apart(a, b) if axis not in mended]
    if not mended:
        alone = f"{chosen[0]} alone" if len(chosen) == 1 else f"{listed(chosen)}, as chosen"
        return Fairness("fair", "\u2713 Fair", f"They differ in {alone}.", same)
    unchosen = [
        f"{lowered(axis_title(axis))} ({', '.join(_came_to(name, arm, axis) for name, arm in arms.items())})"
        for axis in mended
    ]
    differ = f"They differ in {listed(chosen)}, and " if chosen else "They differ "
    changes = [
        f"{lowered(axis_title(axis))} {choice_title(axis, choice)} in {name}"
        for name, choices in fix.items()
        for axis, choice in choices.items()
    ]
    sentence = f"{differ}in what an arm leaves open: {listed(unchosen)}."
    return Fairness("unasked", "\u25b2 Not fair yet", sentence, same, fix, f"Use the same: {listed(changes)}")


def _fix(arms: Mapping[str, Checked], check: Check) -> tuple[Changes, list[str]]:
    """The changes that make the arms the same in what nobody chose, where an arm can have them, and their axes."""
    (name_a, a), (name_b, b) = arms.items()
    defaults = {axis.name: axis.default for axis in all_axes()}
    fix: Changes = {}
    mended = []
    for axis, (of_a, of_b) in unasked(a, b).items():
        ways = [(name_b, of_a), (name_a, of_b)]
        if b.requested[axis] != defaults[axis] and a.requested[axis] == defaults[axis]:  # B's was named
            ways.reverse()
        for name, choice in ways:
            candidate = fix | {name: fix.get(name, {}) | {axis: choice}}
            if choice != defaults[axis] and _works(check, candidate, axis):
                fix = candidate
                mended.append(axis)
                break
    return fix, mended


def _works(check: Check, changes: Changes, axis: str) -> bool:
    try:
        a, b = check(changes).values()
    except InputError:
        return False
    return not (a.blocked or b.blocked) and axis not in apart(a, b)


def _came_to(name: str, arm: Checked, axis: str) -> str:
    requested, planned = arm.requested[axis], arm.planned[axis]
    by = f" by {choice_title(axis, requested)}" if requested != planned else ""
    return f"{name} {choice_title(axis, planned)}{by}"


def _same(arms: Mapping[str, Checked], facts: ModelFacts, warm: Sequence[str]) -> str:
    """What a reader would ask about first: the choices that both arms have, and where their workers come from."""
    a, b = arms.values()
    both = [
        f"{lowered(axis.title)} {choice_title(axis.name, planned)}"
        for axis in all_axes()
        if axis.matters(facts) and (planned := a.planned[axis.name]) == b.planned[axis.name] and planned != axis.off
        if planned != axis.default or (axis.leading and planned != "auto")
    ]
    sentence = f"Same: {', '.join([*both, 'prompt and length'])}"
    if len(warm) == 1:
        (cold,) = (name for name in arms if name not in warm)
        sentence += f". {warm[0]} keeps its worker of an earlier run, {cold} gets a new one"
    return sentence
