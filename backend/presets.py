"""The TOML files in `presets/`: arms and prompts, read strictly."""

import functools
import tomllib
from pathlib import Path
from typing import TypeVar

import msgspec

from backend.errors import InputError, unknown
from backend.optimizations import axes

T = TypeVar("T", bound=msgspec.Struct)

FOLDER = Path(__file__).resolve().parent.parent / "presets"


class ArmPreset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A named arm: what it is for, and its choices by axis."""

    name: str
    title: str
    summary: str
    choices: dict[str, str] = {}
    order: int = 100


class Prompt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A prompt worth running, with a length that shows something."""

    name: str
    title: str
    text: str
    max_new_tokens: int
    prompt_tokens: int = 0
    ignore_eos: bool = False


class _Prompts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    prompts: list[Prompt]


def read_toml(path: Path, kind: type[T]) -> T:
    """A TOML file as `kind`; an InputError names the file and what is wrong in it, with the nearest valid name."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        for key in table.keys() - set(kind.__struct_fields__):
            raise _unusable(path, unknown("key", key, kind.__struct_fields__))
        return msgspec.convert(table, kind, strict=True)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise _unusable(path, f"{error}.") from error


def _unusable(path: Path, why: object) -> InputError:
    return InputError(f"{path.name} in {path.parent} cannot be used: {why} Correct or remove it.")


def read_arm(path: Path) -> ArmPreset:
    """An arm's file, checked against the axes; an InputError names the file and the nearest valid name."""
    preset = read_toml(path, ArmPreset)
    known = {axis.name: axis for axis in axes()}
    for axis, choice in preset.choices.items():
        if axis not in known:
            raise _unusable(path, unknown("axis", axis, known))
        names = [c.name for c in known[axis].choices]
        if choice not in names:
            raise _unusable(path, unknown(f"{axis} choice", choice, names))
    return preset


@functools.cache
def arm_presets() -> tuple[ArmPreset, ...]:
    """All presets in `presets/arms/`, in the order in which they are shown."""
    found = [read_arm(path) for path in sorted((FOLDER / "arms").glob("*.toml"))]
    return tuple(sorted(found, key=lambda preset: (preset.order, preset.name)))


@functools.cache
def prompts() -> tuple[Prompt, ...]:
    """The prompts in `presets/prompts.toml`; the first is the default."""
    return tuple(read_toml(FOLDER / "prompts.toml", _Prompts).prompts)
