"""What two arms are called in sentences: by preset or by what tells them apart, never by more than a few words."""

from tokendyno.backend.arms.presets import arm_presets
from tokendyno.backend.config import ArmRequest
from tokendyno.backend.optimizations import all_axes, choice_title
from tokendyno.backend.optimizations.base import Optimization
from tokendyno.backend.runs.records import OfRun

NAMED_BY_CHOICE = ("dtype", "parallel")
MOST_AXES = 2
"""Arms that differ in more axes, and are no presets, are called by their letters."""


def arm_names(run: OfRun) -> dict[str, str]:
    """By letter, for the middle of a sentence: titles of presets, else the choices that differ, else the letters."""
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
    return lowered(found.title) if found is not None else ""


def lowered(title: str) -> str:
    """A title inside a sentence: "Static cache" without its capital, "FlashAttention 2" as it is."""
    first = title.partition(" ")[0]
    return title[0].lower() + title[1:] if first.isalpha() and first[1:].islower() and len(first) > 1 else title


def _differing(a: ArmRequest, b: ArmRequest) -> dict[str, str]:
    """By the choices in which they differ; an arm that has none but defaults there is "the same without it"."""

    def choice(arm: ArmRequest, one: Optimization) -> str:
        return arm.choices.get(one.name, one.default)

    apart = [one for one in all_axes() if choice(a, one) != choice(b, one)]
    if not 0 < len(apart) <= MOST_AXES:
        return {a.name: "", b.name: ""}
    by_default = {arm.name: all(choice(arm, one) in (one.default, one.off) for one in apart) for arm in (a, b)}
    names = {}
    for arm in (a, b):
        words = [_choice_name(one, choice(arm, one)) for one in apart]
        names[arm.name] = (
            "the same without it" if by_default[arm.name] and not all(by_default.values()) else ", ".join(words)
        )
    return names


def _choice_name(axis: Optimization, choice: str) -> str:
    """The title of the preset that is this choice alone, else the choice with its axis."""
    for preset in arm_presets():
        if preset.choices == {axis.name: choice}:
            return lowered(preset.title)
    title = choice_title(axis.name, choice)
    if axis.name == "batching" and title != axis.off:
        return f"{title} batching"
    return title if axis.name in NAMED_BY_CHOICE else f"{title} {lowered(axis.title)}"
