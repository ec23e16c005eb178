"""Given texts, through which two arms are compared position by position."""

import functools
import re
from collections.abc import Sequence

import msgspec

from tokendyno.backend.errors import InputError
from tokendyno.backend.files.toml import read_toml
from tokendyno.backend.paths import PRESETS

MIN_POSITIONS = 16
MAX_POSITIONS = 4_096
MAX_CONTEXT = 4_096
MAX_TEXTS = 16


class QualityText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text with a name. InputError if there is nothing in it."""

    name: str
    text: str

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise InputError(f"The text {self.name!r} is empty. Give one of at least a paragraph.")


PASSAGE_WORDS = 280
"""More tokens than are read of a text, whatever the tokenizer is: no word is less than one."""
LEAST_WORDS = 80
MOST_PASSAGES = 4

YOURS = "your text"
"""What passages are called of a text that was pasted."""


def passages(name: str, text: str) -> list[QualityText]:
    """Up to `MOST_PASSAGES` passages of a text, evenly spaced. InputError for one of less than a paragraph."""
    words = list(re.finditer(r"\S+", text))
    if len(words) < LEAST_WORDS:
        raise InputError(f"The text {name!r} has {len(words)} words. Give one of at least {LEAST_WORDS}.")
    count = max(1, min(MOST_PASSAGES, len(words) // PASSAGE_WORDS))
    starts = [words[index * len(words) // count].start() for index in range(count)]
    return named_parts(name, [text[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)])


def named_parts(name: str, texts: Sequence[str]) -> list[QualityText]:
    """Passages of one text, numbered where there are several."""
    names = [name] if len(texts) == 1 else [f"{name}, part {index + 1}" for index in range(len(texts))]
    return [*map(QualityText, names, texts)]


class Quality(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Texts that both arms are given token by token, instead of generating their own.

    positions  tokens after them, at most, that the model is asked to predict, one step each. InputError unless all
               numbers are within their limits
    """

    texts: Sequence[QualityText]
    context: int = 16
    positions: int = 192

    def __post_init__(self) -> None:
        names = [text.name for text in self.texts]
        if not 1 <= len(names) <= MAX_TEXTS:
            raise InputError(f"Quality is compared on 1 to {MAX_TEXTS} texts, not {len(names)}.")
        if repeated := next((name for name in names if names.count(name) > 1), None):
            raise InputError(f"Two texts are called {repeated!r}. Rename one of them.")
        if not 1 <= self.context <= MAX_CONTEXT:
            raise InputError(f"The context is {self.context} tokens; it must be from 1 to {MAX_CONTEXT:,}.")
        if not MIN_POSITIONS <= self.positions <= MAX_POSITIONS:
            raise InputError(
                f"{self.positions} positions were asked for; it must be from {MIN_POSITIONS} to {MAX_POSITIONS:,}: "
                "fewer say nothing about quality."
            )


# --- the texts that come with the project ----------------------------------------------------------


class TextPreset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One text of a kind that number formats may hurt differently."""

    name: str
    title: str
    text: str
    order: int = 100


@functools.cache
def text_presets() -> Sequence[TextPreset]:
    """All presets in `presets/quality/`, in the order in which they are read."""
    presets = [read_toml(path, TextPreset) for path in sorted((PRESETS / "quality").glob("*.toml"))]
    return tuple(sorted(presets, key=lambda preset: (preset.order, preset.name)))


def shipped_texts() -> list[QualityText]:
    """The texts of all presets, to compare arms on."""
    return [QualityText(preset.name, preset.text.strip()) for preset in text_presets()]
