"""The texts that come with the project, from the TOML files in `presets/quality/`."""

import functools
from collections.abc import Sequence

import msgspec

from tokendyno.backend.files.toml import read_toml
from tokendyno.backend.paths import PRESETS
from tokendyno.backend.quality.texts import QualityText


class TextPreset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One text of a kind that number formats may hurt differently."""

    name: str
    title: str
    text: str
    order: int = 100


@functools.cache
def text_presets() -> Sequence[TextPreset]:
    """All of them, in the order in which they are read."""
    found = [read_toml(path, TextPreset) for path in sorted((PRESETS / "quality").glob("*.toml"))]
    return tuple(sorted(found, key=lambda preset: (preset.order, preset.name)))


def shipped_texts() -> list[QualityText]:
    """The same as texts to compare arms on."""
    return [QualityText(preset.name, preset.text.strip()) for preset in text_presets()]
