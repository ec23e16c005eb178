"""Presets of arms and prompts, read from the TOML files in `presets/`."""

import functools
from pathlib import Path
from typing import Literal

import msgspec

from tokendyno.backend.errors import InputError, unknown
from tokendyno.backend.files.toml import invalid, read_toml
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.paths import PRESETS


class ArmPreset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A named arm: its purpose, and its choices by axis.

    bundle     its choices are wishes: what cannot run gives way (`tokendyno.backend.arms.bundles`); any other preset
               is one optimization with what it cannot be without, and is refused where it cannot run
    next_best  of a bundle, by axis: what to take instead, best first
    best_for   of a bundle, by architecture, for every "mixture" of experts or every "encoder": choices that come before
                those above
    saves_memory   of a bundle: quantization that is predicted to take more memory than none gives way
    captured   of a bundle: choices that come before all of these together, on a GPU where CUDA graphs can be captured
               and memory allows it (`bundles.grant`)
    captured_for   how much memory that is: no more than without them, or what the GPU has, for as many tokens as the
               model has positions
    """

    name: str
    title: str
    summary: str
    choices: dict[str, str] = {}
    order: int = 100
    bundle: bool = False
    saves_memory: bool = False
    next_best: dict[str, list[str]] = {}
    best_for: dict[str, dict[str, str]] = {}
    captured: dict[str, str] = {}
    captured_for: Literal["no more memory", "whole context"] = "no more memory"

    def wishes(self, *traits: str, captured: bool = False) -> dict[str, list[str]]:
        """The choices of each axis for a model with these traits (`traits`), best first."""
        wishes: dict[str, list[str]] = {}
        first = self.captured if captured else {}
        for wished in (first, *(self.best_for.get(trait, {}) for trait in reversed(traits)), self.choices):
            for axis, choice in wished.items():
                wishes.setdefault(axis, []).append(choice)
        for axis, choices in self.next_best.items():
            wishes.setdefault(axis, []).extend(choices)
        return wishes


def traits(facts: ModelFacts) -> tuple[str, ...]:
    """The keys of `best_for` that hold for a model, from the most general to the most particular."""
    return (facts.kind, *(("mixture",) if facts.experts else ()), facts.architecture)


class Prompt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt with a suitable number of tokens to generate."""

    name: str
    title: str
    text: str
    max_new_tokens: int
    prompt_tokens: int = 0
    ignore_eos: bool = False


class _Prompts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    prompts: list[Prompt]


def read_arm(path: Path) -> ArmPreset:
    """An arm's file, checked against the axes; an InputError names the file and the nearest valid name."""
    preset = read_toml(path, ArmPreset)
    known = {axis.name: axis for axis in all_axes()}
    wishes = [preset.choices, preset.captured, *preset.best_for.values()]
    pairs = [pair for choices in wishes for pair in choices.items()]
    pairs += [(axis, choice) for axis, choices in preset.next_best.items() for choice in choices]
    for axis, choice in pairs:
        if axis not in known:
            raise invalid(path, unknown("axis", axis, known))
        names = [c.name for c in known[axis].choices]
        if choice not in names:
            raise invalid(path, unknown(f"{axis} choice", choice, names))
    if not preset.bundle and (preset.next_best or preset.best_for or preset.captured):
        raise invalid(path, InputError("next_best, best_for and captured belong to a bundle. Add bundle = true."))
    return preset


@functools.cache
def arm_presets() -> tuple[ArmPreset, ...]:
    """All presets in `presets/arms/`, in the order in which they are shown."""
    presets = [read_arm(path) for path in sorted((PRESETS / "arms").glob("*.toml"))]
    return tuple(sorted(presets, key=lambda preset: (preset.order, preset.name)))


@functools.cache
def prompts() -> tuple[Prompt, ...]:
    """The prompts in `presets/prompts.toml`; the first is the default."""
    return tuple(read_toml(PRESETS / "prompts.toml", _Prompts).prompts)
