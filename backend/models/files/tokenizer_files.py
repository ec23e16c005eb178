"""The files of a tokenizer in a model's folder: whether they are there, and whether transformers could read them."""

import json
from functools import lru_cache
from pathlib import Path

import msgspec

from tokendyno.backend.errors import UNDECODABLE, InputError
from tokendyno.backend.models.files.config_fields import read_json

VOCABULARIES = ("tokenizer.json", "tekken.json", "vocab.json", "vocab.txt", "merges.txt", "bpe.codes", "dict.txt")
VOCABULARY_ENDINGS = (".model", ".spm", ".tiktoken")
WITHOUT_VOCABULARY = ("ByT5Tokenizer", "CanineTokenizer", "PerceiverTokenizer")
"""Tokenizers of bytes or characters."""

FAST, SETTINGS, SPECIAL_MAP = "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"
BESIDE = (SETTINGS, SPECIAL_MAP, "added_tokens.json")
"""Files that transformers 5.22 reads wherever they lie beside a vocabulary, and fails on if they are torn."""

MAX_BYTES = 128 << 20
"""Gemma 3's tokenizer.json has 33 MB."""


class _Tokenizer(msgspec.Struct):
    model: dict[str, msgspec.Raw] | None = None


def has_tokenizer(folder: Path) -> bool:
    """Whether there is a vocabulary by any name that transformers reads, or a tokenizer that needs none."""
    names = [path.name for path in folder.iterdir() if path.is_file()]
    if any(name in VOCABULARIES or name.endswith(VOCABULARY_ENDINGS) for name in names):
        return True
    try:
        settings = read_json(folder / SETTINGS) if SETTINGS in names else {}
    except InputError:
        return True  # `check_tokenizer` says what is wrong with it
    return settings.get("tokenizer_class") in WITHOUT_VOCABULARY


def check_tokenizer(folder: Path) -> None:
    """InputError unless there are files of a tokenizer, and those that are JSON can be read."""
    if not has_tokenizer(folder):
        raise InputError(
            f"The folder {folder} has no tokenizer (no {FAST}). Copy the tokenizer's files of the original "
            "model into it: save_pretrained of a tokenizer writes them."
        )
    for name in (FAST, *BESIDE):
        path = folder / name
        if path.is_file() and (torn := _torn(path)):
            raise InputError(
                f"The tokenizer cannot be read: {path} {torn}. Copy the tokenizer's files of the original model again: "
                "save_pretrained of a tokenizer writes them."
            )


def _torn(path: Path) -> str:
    """What is wrong with a file, as the end of a sentence; "" if nothing is."""
    try:
        state = path.stat()
        return _torn_as_of(path, state.st_size, state.st_mtime_ns)
    except OSError as error:
        return f"cannot be opened ({error.strerror})"


@lru_cache(maxsize=64)
def _torn_as_of(path: Path, size: int, changed_ns: int) -> str:
    """The same of a file of that size and time: read again once it has changed."""
    if size > MAX_BYTES:
        return f"has more than {MAX_BYTES:,} bytes, more than any tokenizer's"
    try:
        if path.name != FAST:
            json.loads(path.read_bytes()).keys()  # as transformers reads settings: it takes Infinity
        elif msgspec.json.decode(path.read_bytes(), type=_Tokenizer).model is None:
            return 'has no vocabulary (no "model")'
    except (ValueError, AttributeError, *UNDECODABLE):
        return "is cut off, or no JSON object"
    return ""
