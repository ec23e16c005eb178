"""Given texts: what comes with the project, and what is refused."""

import pytest

from tokendyno.backend.errors import InputError
from tokendyno.backend.quality import Quality, QualityText
from tokendyno.backend.quality.texts import shipped_texts

ONE = QualityText("one", "A text.")


def test_four_kinds_of_text_are_shipped_each_long_enough() -> None:
    found = {text.name: text.text for text in shipped_texts()}
    assert list(found) == ["story", "prose", "code", "arithmetic"]
    assert all(len(text) > 900 for text in found.values())  # over 200 tokens


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
