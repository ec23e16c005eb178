"""Tokens of a text by the files of a model that are here."""

import shutil
from pathlib import Path

import pytest

from tokendyno.backend.models import resolve
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.models.tokens import count_tokens


@pytest.mark.parametrize("text", ["Once upon a time. ", "\u00e9\u4f60\U0001f98a"])
def test_as_many_as_the_models_tokenizer_makes_of_it(text: str) -> None:
    from transformers import AutoTokenizer

    source = resolve("pocket").source
    ids = AutoTokenizer.from_pretrained(source.path)(text, add_special_tokens=False)["input_ids"]
    assert count_tokens(source, text) == len(ids)
    assert count_tokens(resolve("random:gpt2").source, text) == len(text.encode())


def test_unknown_where_there_is_no_tokenizer_or_none_that_can_be_read(tmp_path: Path) -> None:
    assert count_tokens(ModelSource("folder", path=str(tmp_path)), "a") is None
    assert count_tokens(ModelSource("hub", repo="org/not-here"), "a") is None
    shutil.copy(__file__, tmp_path / "tokenizer.json")
    assert count_tokens(ModelSource("folder", path=str(tmp_path)), "a") is None
