"""Names that nobody knows: a suggestion only where one is near."""

import pytest

from tokendyno.backend.errors import MAX_LISTED, near_names, unknown

MODELS = [
    "Llama-3-8B",
    "Mistral-7B-v0.1",
    "SmolLM2-135M-Instruct",
    "bert-base-uncased",
    "gpt-oss-20b",
    "gpt2",
    "pocket",
]


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("pocke", "pocket"),
        ("POCKET", "pocket"),
        ("llama3", "Llama-3-8B"),
        ("llama", "Llama-3-8B"),
        ("smollm", "SmolLM2-135M-Instruct"),
        ("MISTRAL-7B", "Mistral-7B-v0.1"),
        ("gpt-os", "gpt-oss-20b"),
        ("pocket-large", "pocket"),
        ("bert", "bert-base-uncased"),
        ("smollm135", "SmolLM2-135M-Instruct"),
    ],
)
def test_what_is_near_is_suggested(typed: str, first: str) -> None:
    assert near_names(typed, MODELS)[0] == first
    assert f"Did you mean {first!r}?" in str(unknown("model", typed, MODELS))


@pytest.mark.parametrize("typed", ["nonsense", "xyz", "", "b", "random", "model", "7B"])
def test_what_is_not_near_gets_no_suggestion(typed: str) -> None:
    assert near_names(typed, MODELS) == []
    assert str(unknown("model", typed, MODELS)).startswith(f"Unknown model {typed!r}. Valid: Llama-3-8B, ")


def test_of_many_names_only_the_near_ones_are_listed() -> None:
    names = [f"preset-{i}" for i in range(MAX_LISTED)] + ["static"]
    assert str(unknown("preset", "statik", names, "a folder")) == (
        "There is no preset 'statik'. Did you mean 'static'? All of them: a folder."
    )
    assert str(unknown("preset", "zzz", names, "a folder")) == ("There is no preset 'zzz'. All of them: a folder.")
