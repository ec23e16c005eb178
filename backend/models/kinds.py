"""Fields of a config with a value of a kind that transformers refuses, such as text where the id of a token belongs.

The config classes of transformers 5.22 take each field in its declared kind only. Fields that sizes are computed from
are also checked where they are read; architectures outside the table are built, and so checked, by transformers itself.
Tests compare this table with that package.
"""

from collections.abc import Callable
from typing import Any

from tokendyno.backend.errors import InputError
from tokendyno.backend.models.families import FAMILIES, Family
from tokendyno.backend.models.files.config_fields import Fields, show


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _ids(value: Any) -> bool:
    ids = value if isinstance(value, list) else [] if value is None else [value]
    return all(map(_whole, ids))


KINDS: dict[str, Callable[[Any], bool]] = {
    "a whole number": _whole,
    "a whole number or null": lambda value: value is None or _whole(value),
    "the id of a token, a list of ids or null": _ids,
    "a number with a decimal point": lambda value: isinstance(value, float),
    "true or false": lambda value: isinstance(value, bool),
    "a name": lambda value: isinstance(value, str),
}

EVERY = {
    "eos_token_id": "the id of a token, a list of ids or null",
    "bos_token_id": "a whole number or null",
    "pad_token_id": "a whole number or null",
    "initializer_range": "a number with a decimal point",
    "use_cache": "true or false",
    "tie_word_embeddings": "true or false",
}
SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "max_position_embeddings",
    "intermediate_size",
)
BY_LAYOUT = {
    "llama": dict.fromkeys(SIZES, "a whole number") | {"rms_norm_eps": "a number with a decimal point"},
    "bert": dict.fromkeys(SIZES, "a whole number")
    | {"layer_norm_eps": "a number with a decimal point", "hidden_act": "a name"},
    "gpt2": dict.fromkeys(("vocab_size", "n_embd", "n_layer", "n_head", "n_positions"), "a whole number")
    | {"layer_norm_epsilon": "a number with a decimal point", "activation_function": "a name"},
}
GEMMA_2 = (FAMILIES["gemma2"], FAMILIES["gemma3_text"])
"""Their activation has another name."""


def declared(family: Family) -> dict[str, str]:
    """Field -> kind, a key of `KINDS`."""
    act = {"hidden_activation" if family in GEMMA_2 else "hidden_act": "a name"} if family.layout == "llama" else {}
    return EVERY | BY_LAYOUT[family.layout] | act


def check_kinds(fields: Fields, family: Family, vocab: int) -> None:
    """InputError for a field of the wrong kind, and for a padding token outside the vocabulary: its row of the
    embedding is set to zero. Fields that are left out have defaults."""
    for name, kind in declared(family).items():
        if name in fields and not KINDS[kind](value := fields.value(name)):
            raise InputError(
                f"{fields.where}: {name!r} is {show(value)}; {kind} is needed. Copy it again from the original "
                "checkpoint, or correct the file."
            )
    pad = fields.raw("pad_token_id")
    if pad is not None and family.layout != "gpt2" and not -vocab <= pad < vocab:
        raise InputError(
            f"{fields.where}: 'pad_token_id' is {show(pad)}, and the vocabulary has {vocab:,} tokens. Correct the "
            "file, or set it to null."
        )
