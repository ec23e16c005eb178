"""The TOML files in `presets/`: arms and prompts, read strictly."""

import functools
import tomllib
from pathlib import Path
from typing import TypeVar

import msgspec

from backend.errors import InputError

T = TypeVar("T")

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
    """A TOML file as `kind`; an InputError names the file and what is wrong in it."""
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), kind, strict=True)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InputError(f"{path.name} in {path.parent} cannot be used: {error}. Correct or remove it.") from error


@functools.cache
def arm_presets() -> tuple[ArmPreset, ...]:
    """All presets in `presets/arms/`, in the order in which they are shown."""
    found = [read_toml(path, ArmPreset) for path in sorted((FOLDER / "arms").glob("*.toml"))]
    return tuple(sorted(found, key=lambda preset: (preset.order, preset.name)))


@functools.cache
def prompts() -> tuple[Prompt, ...]:
    """The prompts in `presets/prompts.toml`; the first is the default."""
    return tuple(read_toml(FOLDER / "prompts.toml", _Prompts).prompts)
