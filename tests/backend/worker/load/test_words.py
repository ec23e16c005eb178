"""What random weights write: a word for each id, always the same and of its own."""

import re

from tokendyno.backend.worker.load.random_weights import WORDS, byte_tokenizer, word_of


def test_every_id_has_a_plain_word_of_its_own() -> None:
    assert len(WORDS) == len(set(WORDS)) == 512
    found = [word_of(number) for number in range(262_208)]
    assert len(set(found)) == len(found)
    assert found[:512] == WORDS and found[512] == f"{WORDS[0]}-{WORDS[0]}"
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)?", word) for word in found)
    assert word_of(512 + 512**2).count("-") == 2


def test_ids_read_as_words_and_a_prompt_as_its_bytes() -> None:
    tokenizer = byte_tokenizer(2_000)
    words = [word_of(number) for number in (0, 1, 600, 1_742)]
    assert tokenizer.decode([256, 257, 856, 1_998]) == " " + " ".join(words)
    assert tokenizer.decode([1_999], skip_special_tokens=True) == ""
    ids = tokenizer(f"A {WORDS[0]}, naïve.")["input_ids"]
    assert len(ids) == len(f"A {WORDS[0]}, naïve.".encode()) and max(ids) < 256
    assert tokenizer.decode(ids) == f"A {WORDS[0]}, naïve."
