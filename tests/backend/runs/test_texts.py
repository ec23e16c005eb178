"""From which token two texts differ, and what is said of it."""

import pytest

from tokendyno.backend.messages import Probed
from tokendyno.backend.optimizations import axis_names
from tokendyno.backend.runs.texts import CAUSES, TextComparison, compare_texts, equal_until
from tokendyno.backend.views.sentences import texts_sentence

PLAIN = {
    "dtype": "bfloat16",
    "cache": "dynamic",
    "attention": "eager",
    "speculation": "off",
    "loading": "plain",
    "prefill": "whole",
    "parallel": "off",
}


@pytest.mark.parametrize(
    ("a", "b", "at"),
    [([1, 2, 3], [1, 2, 3], None), ([1, 2, 3], [1, 9, 3], 1), ([1, 2], [1, 2, 3], 2), ([9], [1], 0), ([], [], None)],
)
def test_the_first_token_that_differs(a: list[int], b: list[int], at: int | None) -> None:
    assert equal_until(a, b) == equal_until(b, a) == at


@pytest.mark.parametrize(
    ("change", "causes"),
    [
        ({}, []),
        ({"loading": "device_map"}, []),
        ({"prefill": "chunks-512"}, ["order of summation"]),
        ({"parallel": "tensor-2"}, ["order of summation"]),
        ({"dtype": "float32"}, ["number format"]),
        ({"cache": "static"}, ["order of summation"]),
        ({"cache": "quantized-fp8"}, ["number format", "order of summation"]),
        ({"cache": "static-fp8", "loop": "own"}, ["number format", "order of summation"]),
        ({"speculation": "prompt-lookup"}, ["verification of several tokens at once"]),
        ({"attention": "sdpa", "dtype": "float16"}, ["number format", "order of summation"]),
    ],
)
def test_the_causes_are_those_of_the_choices_that_differ(change: dict[str, str], causes: list[str]) -> None:
    assert compare_texts([[1], [2]], [PLAIN, PLAIN | change], None).causes == causes


NO_CAUSE = {"loading", "compile_cache"}
"""They decide how a model or its code is read, not what is computed."""
OF_REQUESTS = {
    "batching",
    "batch_size",
    "batch_order",
    "page_size",
    "batch_tokens",
    "scheduler",
    "async_batching",
    "batch_graphs",
}


def test_every_axis_is_a_cause_or_known_to_be_none() -> None:
    """Texts of many requests are compared on a page of their own."""
    assert {axis for axes in CAUSES.values() for axis in axes} == set(axis_names()) - NO_CAUSE - OF_REQUESTS


def test_a_probe_of_another_token_is_not_taken() -> None:
    for token, gap in ((1, 0.25), (0, None)):
        probed = Probed(token, [7, 8], [" a", " the"], [3.5, 3.25])
        assert compare_texts([[1, 2], [1, 3]], [PLAIN, PLAIN], probed).gap == gap


def test_it_is_said_with_the_gap_and_the_cause_and_only_equal_tokens_are_called_the_same() -> None:
    texts = TextComparison(67, 0.03125, [" a", " the"], ["order of summation"])
    assert texts_sentence(texts) == (
        "The texts differ from token 67 on (counted from 0), where the two likeliest tokens, ' a' and ' the', are "
        "0.0312 logits apart. The arms differ in order of summation."
    )
    assert "the same" not in texts_sentence(texts)
    assert texts_sentence(TextComparison(3, 0.0, [" a", " b"])) == (
        "The texts differ from token 3 on (counted from 0), where the two likeliest tokens, ' a' and ' b', are exactly "
        "tied. The arms differ in nothing that is known to change a text."
    )
    assert texts_sentence(TextComparison(None)) == "Both arms generated the same tokens."
    assert texts_sentence(None) == ""
