"""Parses an arm: `axis=choice,axis=choice`, behind the name of a preset or alone."""

from collections.abc import Mapping

from tokendyno.backend.arms.presets import arm_presets
from tokendyno.backend.config import ArmRequest, Config
from tokendyno.backend.errors import InputError, shown, unknown
from tokendyno.backend.optimizations import Choice, Optimization, all_axes, axis_names, choices_called, said_of
from tokendyno.backend.optimizations.base import LAYER_OF, REPOSITORY, divided, is_repository, joined


def parse_arm(model: str, text: str) -> Config:
    """The Config of `axis=choice,axis=choice:key=value;key=value`, of a preset, of a preset and choices in the place of
    its own, or of "" (all defaults). InputError suggests the nearest name."""
    preset, beside = divided_arm(text)
    choices = next((known.choices for known in arm_presets() if known.name == preset), {})
    return make_config(model, {**choices, **beside})


def divided_arm(text: str) -> tuple[str, dict[str, str]]:
    """The preset with which an arm begins, "" if there is none, and the choices as they are written."""
    if not text.strip():
        return "", {}
    presets = {preset.name for preset in arm_presets()}
    first, *parts = (part.strip() for part in text.split(","))
    if "=" in first:
        first, parts = "", [first, *parts]
    elif first not in presets:
        names = {axis.name: ", ".join(choice.name for choice in axis.choices) for axis in all_axes()}
        if first in names:
            raise InputError(f"{first!r} is an axis. Write {first}=choice; choices: {names[first]}.")
        raise _called_otherwise("preset", first) or unknown("preset", first, presets, "tokendyno list presets")
    choices: dict[str, str] = {}
    for part in parts:
        axis, sign, choice = (piece.strip() for piece in part.partition("="))
        if axis in presets and not sign:
            raise InputError(f"An arm has one preset, which comes first: write {axis},axis=choice.")
        if not (axis and sign and choice):
            raise InputError(
                f"Cannot parse {shown(part)!r} in the arm {shown(text.strip())!r}. Write axis=choice,axis=choice; "
                f"axes: {', '.join(axis_names())}."
            )
        if axis in choices:
            raise InputError(f"Axis {axis!r} appears twice in {shown(text.strip())!r}. Give each axis one choice.")
        choices[axis] = choice
    return first, choices


def for_one_prompt(arm: ArmRequest) -> None:
    """InputError where a choice is about many requests."""
    for axis in all_axes():
        if axis.many_requests and (choice := arm.choices.get(axis.name, axis.default)) != axis.default:
            raise InputError(
                f"Arm {arm.name}: {axis.name}={choice} takes many requests. Use `tokendyno batch`, or set "
                f"{axis.name}={axis.default}."
            )


def make_config(model: str, choices: Mapping[str, str]) -> Config:
    """A Config of these choices, without defaults, in a fixed order. InputError for unknown axes and choices."""
    known = {axis.name: axis for axis in all_axes()}
    changes = []
    for name, written in choices.items():
        if name not in known:
            raise _called_otherwise("axis", name, written) or unknown("axis", name, known, "docs/axes.md")
        axis = known[name]
        written = _of_hub(axis, written)
        choice, values = divided(written)
        if choice not in {c.name for c in axis.choices}:
            if meant := _choice_of(axis, choice):
                raise InputError(f"Unknown {name} choice {shown(choice)!r}. Did you mean {meant!r}?")
            raise unknown(f"{name} choice", choice, (c.name for c in axis.choices))
        if choice != axis.default:
            changes.append((name, joined(choice, _changed_values(written, axis.choice(choice), values))))
        elif values:
            raise InputError(f"{name}={choice} takes no values. Write {name}={choice}.")
    return Config(model, tuple(sorted(changes)))


def _of_hub(axis: Optimization, written: str) -> str:
    """The choice as it was written; a bare org/name becomes the value of the choice that takes any repository."""
    if written in {choice.name for choice in axis.choices} or not is_repository(written):
        return written
    takes = (choice.name for choice in axis.choices if REPOSITORY in choice.values.get("repository", ()))
    return next((joined(name, {"repository": written}) for name in takes), written)


def _changed_values(written: str, choice: Choice, values: Mapping[str, str]) -> dict[str, str]:
    """The values that are not the default. InputError for a key or a value that the choice does not take."""
    if written != choice.name and written.count(";") + 1 != len(values):
        raise InputError(f"Cannot parse {shown(written)}. Write {choice.name}:key=value;key=value, each key once.")
    for key, value in values.items():
        if not choice.values:
            raise InputError(f"{choice.name!r} takes no values. Write {choice.name} instead of {shown(written)}.")
        if key not in choice.values:
            raise unknown(f"value of {choice.name}", key, choice.values)
        if any(is_repository(value, kind) for kind in (REPOSITORY, LAYER_OF) if kind in choice.values[key]):
            continue
        if value not in choice.values[key]:
            raise unknown(f"{key} of {choice.name}", value, choice.values[key])
    return {key: value for key, value in values.items() if value != choice.values[key][0]}


def _called_otherwise(what: str, name: str, choice: str = "") -> InputError | None:
    """The InputError for a name by which an axis or a choice is known elsewhere; None if it is none."""
    matches, elsewhere = choices_called(name), said_of(name)
    if not matches and not elsewhere:
        return None
    axes = {axis.name: axis for axis in all_axes()}
    written = []
    for axis, match in matches:
        meant = match or _choice_of(axes[axis], choice)
        names = "" if meant else f" (choices: {', '.join(known.name for known in axes[axis].choices)})"
        written.append(f"{axis}={meant or 'choice'}{names}")
    here = f"Here it is the axis {matches[0][0]}: write {' or '.join(written)}." if matches else ""
    return InputError(" ".join(filter(None, [f"Unknown {what} {shown(name)!r}.", here, elsewhere])))


def _choice_of(axis: Optimization, written: str) -> str:
    """The choice of an axis that goes by this name or alias; "" if none does, or several do."""
    names = [
        choice.name
        for choice in axis.choices
        if written.casefold() in {name.casefold() for name in (choice.name, *axis.aliases.get(choice.name, ()))}
    ]
    return names[0] if len(names) == 1 else ""
