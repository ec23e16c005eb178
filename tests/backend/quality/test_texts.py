"""Given texts: what comes with the project, and what is refused."""

import pytest

from tokendyno.backend.errors import InputError
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.quality import Quality, QualityText
from tokendyno.backend.quality.recipes import recipes, worst_recipe
from tokendyno.backend.quality.texts import shipped_texts
from tokendyno.backend.views.quality import counts

ONE = QualityText("one", "A text.")


def test_four_kinds_of_text_are_shipped_each_long_enough() -> None:
    texts = {text.name: text.text for text in shipped_texts()}
    assert list(texts) == ["story", "prose", "code", "arithmetic"]
    assert all(len(text) > 900 for text in texts.values())  # over 200 tokens


@pytest.mark.parametrize(
    ("texts", "numbers", "said"),
    [
        ([], {}, "1 to 16 texts, not 0"),
        ([ONE, ONE], {}, "Two texts are called 'one'"),
        ([ONE], {"context": 0}, "context is 0"),
        ([ONE], {"positions": 15}, "15 positions were asked for"),
        ([ONE], {"positions": 4_097}, "4097 positions were asked for"),
    ],
)
def test_bad_input_is_a_sentence(texts: list[QualityText], numbers: dict[str, int], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Quality(texts, **numbers)


def test_an_empty_text_is_refused() -> None:
    with pytest.raises(InputError, match="'blank' is empty"):
        QualityText("blank", " \n")


# --- recipes ---------------------------------------------------------------------------------------


def test_the_dearest_choice_decides_and_what_was_not_read_is_unknown() -> None:
    known = {f"{axis.name}={choice.name}" for axis in all_axes() for choice in axis.choices}
    assert {one.choice for one in recipes().recipes} <= known
    eight, four = worst_recipe("quantization=bnb-int8"), worst_recipe("dtype=float16,quantization=bnb-nf4")
    assert eight is not None and four is not None and eight.kl_nats < 0.05 < four.kl_nats
    assert counts(eight.cost) and not counts(four.cost)
    assert worst_recipe("quantization=torchao-int4") is None
