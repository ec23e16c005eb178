"""Presets of arms and prompts, read from the TOML files in `presets/`."""

import functools
from pathlib import Path

import msgspec

from backend.errors import unknown
from backend.optimizations import all_axes
from backend.paths import PRESETS
from backend.toml_files import invalid, read_toml


class ArmPreset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A named arm: its purpose, and its choices by axis."""

    name: str
    title: str
    summary: str
    choices: dict[str, str] = {}
    order: int = 100


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
    for axis, choice in preset.choices.items():
        if axis not in known:
            raise invalid(path, unknown("axis", axis, known))
        names = [c.name for c in known[axis].choices]
        if choice not in names:
            raise invalid(path, unknown(f"{axis} choice", choice, names))
    return preset


@functools.cache
def arm_presets() -> tuple[ArmPreset, ...]:
    """All presets in `presets/arms/`, in the order in which they are shown."""
    found = [read_arm(path) for path in sorted((PRESETS / "arms").glob("*.toml"))]
    return tuple(sorted(found, key=lambda preset: (preset.order, preset.name)))


@functools.cache
def prompts() -> tuple[Prompt, ...]:
    """The prompts in `presets/prompts.toml`; the first is the default."""
    return tuple(read_toml(PRESETS / "prompts.toml", _Prompts).prompts)
