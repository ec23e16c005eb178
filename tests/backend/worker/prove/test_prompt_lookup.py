"""Draft tokens are counted as they are proposed, and computed anew from the text."""

import random
from typing import Any
from unittest import mock

import pytest
import torch
from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

from tokendyno.backend.worker.prove.prompt_lookup import DraftCounter, accepted_due, drafts_due

CASES: list[tuple[list[int], int, int, tuple[int, ...], int]] = [
    ([1, 2, 3, 4, 1, 2], 10, 99, (), 4),  # what followed "1 2", up to the end
    ([1, 2, 3, 4, 1, 2], 3, 99, (), 3),
    ([1, 2, 3, 4, 1, 2], 10, 99, (4,), 1),  # an end of the text is not proposed, nor what comes after it
    ([1, 2, 3, 4, 1, 2], 10, 99, (3,), 0),
    ([5, 2, 3, 4, 1, 2], 10, 99, (), 4),  # "2" alone
    ([1, 2, 3, 4, 5, 6], 10, 99, (), 0),
    ([7, 7, 7, 7], 2, 99, (), 2),  # the first place counts, not the nearest one
    ([1, 2, 3, 4, 1, 2], 10, 7, (), 0),  # one more token is the last
    ([1, 2, 3, 4, 1, 2], 10, 5, (), 3),
    ([1], 10, 99, (), 0),
]


@pytest.mark.parametrize(("text", "most", "end", "eos", "due"), CASES)
def test_what_followed_the_newest_tokens_first_is_due(
    text: list[int], most: int, end: int, eos: tuple[int, ...], due: int
) -> None:
    assert drafts_due([*text, 8, 9], [len(text)], most, end, eos) == due


def proposed(text: list[int], most: int, end: int, eos: Any) -> int:
    """By transformers."""
    ends = torch.tensor(eos) if eos else None
    generator = PromptLookupCandidateGenerator(ends, most, max_length=end)
    return int(generator.get_candidates(torch.tensor([text]))[0].shape[1]) - len(text)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_what_transformers_proposes(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(60):
        text = [chance.randrange(5) for _ in range(chance.randrange(2, 40))]
        most, end, eos = chance.randrange(1, 12), len(text) + chance.randrange(1, 20), [[], [0], [0, 3]][seed % 3]
        assert drafts_due(text, [len(text)], most, end, eos) == proposed(text, most, end, eos), (text, most, end)


def test_look_ups_are_counted_with_the_lengths_that_they_looked_in() -> None:
    generator = PromptLookupCandidateGenerator(None, 3, max_length=40)
    with DraftCounter() as drafts:
        for length in (5, 6):
            generator.get_candidates(torch.tensor([[1, 2, 1, 2, 1, 2][:length]]))
    generator.get_candidates(torch.tensor([[1, 2, 1]]))
    assert (drafts.lookups, drafts.lengths) == (2, [5, 6])
    assert drafts.draft_tokens == drafts_due([1, 2, 1, 2, 1, 2], drafts.lengths, 3, 40, ())
    with mock.patch.object(drafts, "lookups", 0):
        assert drafts.counts(3, 3).lookups == 0


@pytest.mark.parametrize(
    ("after", "due"),
    [
        ([3, 4, 1, 2, 9], 4),  # all four drafts, and a token of the step's own
        ([3, 4, 9, 2, 9], 2),
        ([9, 4, 1, 2, 9], 0),
        ([3, 4, 1, 2], 3),  # the text ends with the last draft, which is its step's own token then
        ([3], 0),
    ],
)
def test_drafts_that_the_text_goes_on_with_should_have_been_accepted(after: list[int], due: int) -> None:
    text = [1, 2, 3, 4, 1, 2]
    assert accepted_due([*text, *after], [6], 10, 99, ()) == due
    assert accepted_due([*text, *after], [6], 1, 99, ()) == min(due, 1)
    assert accepted_due([*text, *after], [6], 10, 7, ()) == 0, "one more token is the last"
    assert accepted_due([*text, *after], [6], 10, 99, (3,)) == 0, "what ends a text is not proposed"
