"""What two arms are called in sentences: by preset or by what tells them apart, never by more than a few words."""

from collections.abc import Mapping

from tokendyno.backend.arms.presets import arm_presets
from tokendyno.backend.config import ArmRequest
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.optimizations.base import Optimization
from tokendyno.backend.runs.records import OfRun

MOST_AXES = 2
"""Arms that differ in more axes, and are no presets, are called by their letters."""


def arm_names(run: OfRun) -> dict[str, str]:
    """By letter: the titles of presets, else the choices in which two arms differ, else the letters. For the middle of
    a sentence; `capitalized` begins one."""
    arms = run.request.arms
    letters = {arm.name: arm.name for arm in arms}
    if len(arms) != 2:
        return letters
    presets = {arm.name: _preset(arm) for arm in arms}
    for names in (presets, _differing(*arms)):
        if all(names.values()) and len(set(names.values())) == len(names):
            return names
    return letters


def capitalized(text: str) -> str:
    """A sentence that may begin with a name: ordinary words get a capital, names such as float32 stay."""
    word = text.partition(" ")[0].rstrip(",:")
    return text[:1].upper() + text[1:] if word.isalpha() and word.islower() else text


def _preset(arm: ArmRequest) -> str:
    known = sorted(arm_presets(), key=lambda one: (one.name != arm.preset, one.bundle))
    found = next((one for one in known if one.name == arm.preset or one.choices == arm.choices), None)
    return _inside(found.title) if found is not None else ""


def _inside(title: str) -> str:
    """A title inside a sentence: "Static cache" without its capital, "FlashAttention 2" as it is."""
    first = title.partition(" ")[0]
    return title[0].lower() + title[1:] if first.isalpha() and first[1:].islower() and len(first) > 1 else title


def _differing(a: ArmRequest, b: ArmRequest) -> dict[str, str]:
    apart = [
        one
        for one in all_axes()
        if _choice(a.choices, one.name, one.default) != _choice(b.choices, one.name, one.default)
    ]
    if len(apart) > MOST_AXES:
        return {a.name: "", b.name: ""}

    def named(arm: ArmRequest) -> str:
        found = [(one, one.choice(_choice(arm.choices, one.name, one.default)).title) for one in apart]
        return ", ".join(_called(one, title) for one, title in found)

    return {arm.name: named(arm) for arm in (a, b)}


def _called(axis: Optimization, title: str) -> str:
    if axis.name == "dtype":
        return title
    if axis.name == "batching" and title != axis.off:
        return f"{title} batching"
    return f"{_inside(axis.title)} {title}"


def _choice(choices: Mapping[str, str], axis: str, default: str) -> str:
    return choices.get(axis, default)
