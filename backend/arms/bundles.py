"""Presets of several optimizations are wishes: what cannot run here gives way, and is said."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from tokendyno.backend import hardware
from tokendyno.backend.arms.check import Checked, check
from tokendyno.backend.arms.parse import divided_arm, make_config, parse_arm
from tokendyno.backend.arms.presets import ArmPreset, arm_presets, traits
from tokendyno.backend.config import ArmRequest, Workload
from tokendyno.backend.evidence import Verdict
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.units import bytes_text

_SOURCE = "presets/arms/{}.toml"

WITH_AND_WITHOUT = "with and without, {} and {} are predicted for this prompt and these lengths."

NOTHING: Mapping[str, str] = MappingProxyType({})

TELLS_APART = 0.03
"""Share of memory from which on two predictions for a GPU are told apart: peaks were off by -1.5% to +5.4%
(lab/measurements.md)."""


@dataclass(frozen=True, slots=True)
class Granted:
    """What a preset comes to: choices without defaults, by axis, and a note for each wish that gave way."""

    choices: Mapping[str, str]
    notes: tuple[Verdict, ...] = ()


def bundle(name: str) -> ArmPreset | None:
    """The preset of that name if it is a bundle."""
    return next((preset for preset in arm_presets() if preset.name == name and preset.bundle), None)


def grant(
    preset: ArmPreset, facts: ModelFacts, machine: Machine, workload: Workload, beside: Mapping[str, str] = NOTHING
) -> Granted:
    """A preset as it is; of a bundle, the first wish on each axis that is not refused for another reason than memory,
    with the bundle's captured steps where memory allows them (`ArmPreset.captured_for`). `beside`: choices that are
    made, to which wishes give way."""
    if not preset.bundle:
        return Granted({**preset.choices, **beside})
    eager, without = _granted(preset, facts, machine, workload, False, beside)
    if not preset.captured or machine.device != "cuda":
        return eager
    captured, checked = _granted(preset, facts, machine, workload, True, beside)
    if captured.choices.get("cuda_graphs") != "manual":
        return eager
    if preset.captured_for == "whole context":
        prompt = max(facts.max_positions - workload.max_new_tokens, workload.prompt_tokens, 1)
        whole = replace(workload, prompt="", prompt_tokens=prompt)
        checked = check(make_config(facts.model, captured.choices), facts, machine, whole, remedy=False)
        allowed_bytes = machine.gpus[0].memory_bytes  # what is free of it differs from one moment to the next
        sizes = checked.needed_bytes, allowed_bytes
        why = f"for all {facts.max_positions:,} positions, {{}} are predicted, and the GPU has {{}}."
    else:
        sizes = checked.needed_bytes, without.needed_bytes
        allowed_bytes = int((1 + TELLS_APART) * without.needed_bytes)
        why = WITH_AND_WITHOUT
    if sizes[0] <= allowed_bytes:
        return captured
    why = why.format(*(" ".join(bytes_text(size)) for size in sizes))
    said = Verdict("note", "cuda_graphs", why)
    return Granted(eager.choices, (*eager.notes, _note(preset, "cuda_graphs", "manual", None, said)))


def _granted(
    preset: ArmPreset,
    facts: ModelFacts,
    machine: Machine,
    workload: Workload,
    captured: bool,
    beside: Mapping[str, str],
) -> tuple[Granted, Checked]:
    """What a bundle comes to, with its captured steps or without, and that arm, checked."""
    wishes = preset.wishes(*traits(facts), captured=captured)
    first = {axis: wished[0] for axis, wished in wishes.items()}
    reasons: dict[str, Verdict] = {}
    while True:
        choices = {axis: wished[0] for axis, wished in wishes.items() if wished}
        config = make_config(facts.model, {**choices, **beside})
        checked = check(config, facts, machine, workload, remedy=False)
        refused = ((axis, v) for v in checked.blocked for axis in (v.axis, *(v.fix if v.axis in beside else ())))
        axis, why = next(((axis, v) for axis, v in refused if axis in choices and axis not in beside), ("", None))
        if why is None and preset.saves_memory and wishes["quantization"] and "quantization" not in beside:
            dense = make_config(facts.model, {**choices, **beside, "quantization": "none"})
            why = _takes_more(checked, check(dense, facts, machine, workload, remedy=False))
            if why is not None:
                first["quantization"], reasons["quantization"] = choices["quantization"], why
                wishes["quantization"].clear()
                continue
        if why is None:
            break
        reasons.setdefault(axis, why)
        wishes[axis].pop(0)
    granted = dict(config.choices)
    notes = [_note(preset, axis, first[axis], granted.get(axis), why) for axis, why in reasons.items()]
    if not granted:
        nothing = f"Nothing is left of the preset {preset.name} here: the model runs as it comes."
        notes.insert(0, Verdict("note", "model", nothing, {}, _SOURCE.format(preset.name)))
    return Granted(granted, tuple(notes)), checked


def _takes_more(checked: Checked, other: Checked) -> Verdict | None:
    """Why an arm gives way to the other, if it is predicted to take more memory; None where it is not."""
    if other.blocked or checked.needed_bytes <= other.needed_bytes:
        return None
    sizes = (" ".join(bytes_text(size)) for size in (checked.needed_bytes, other.needed_bytes))
    return Verdict("note", "quantization", WITH_AND_WITHOUT.format(*sizes))


def _note(preset: ArmPreset, axis: str, wished: str, instead: str | None, why: Verdict) -> Verdict:
    what = f"{axis}={wished} gives way to {axis}={instead}" if instead else f"{axis}={wished} is left out"
    return Verdict("note", axis, f"Of the preset {preset.name}, {what}: {why.reason}", {}, _SOURCE.format(preset.name))


def written_arm(
    name: str,
    text: str,
    model: str,
    workload: Workload,
    facts: Callable[[], ModelFacts],
    machine: Machine | None = None,
) -> ArmRequest:
    """An arm as it is written on the command line; of a bundle, what this model can run on `machine`, by default this
    one, beside the choices that are written with it."""
    preset, beside = divided_arm(text)
    wished, plain = bundle(preset), dict(parse_arm(model, text).choices)
    if wished is None:
        return ArmRequest(name, plain)
    granted = grant(wished, facts(), machine or hardware.detect(), workload, beside)
    return ArmRequest(name, dict(granted.choices), text.strip())


def gave_way(arm: ArmRequest, facts: ModelFacts, machine: Machine, workload: Workload) -> tuple[Verdict, ...]:
    """A note for each wish that gave way of the bundle from which an arm came; none if the arm was edited since."""
    preset = bundle(arm.preset.partition(",")[0])
    if preset is None:
        return ()
    granted = grant(preset, facts, machine, workload, divided_arm(arm.preset)[1])
    edited = dict(granted.choices) != dict(make_config(facts.model, arm.choices).choices)
    return () if edited else granted.notes


def noted(checked: Checked, arm: ArmRequest, facts: ModelFacts, machine: Machine, workload: Workload) -> Checked:
    """A checked arm with the notes of the bundle that it came from, if its choices are still what was granted."""
    return replace(checked, verdicts=(*gave_way(arm, facts, machine, workload), *checked.verdicts))
