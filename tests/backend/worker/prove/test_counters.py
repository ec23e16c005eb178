"""Draft tokens are counted as they are proposed, and computed anew from the text."""

import random
from typing import Any

import pytest
import torch
from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

from tokendyno.backend.worker.prove.counters import expected_drafts


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
        assert expected_drafts(text, [len(text)], most, end, eos)[0] == proposed(text, most, end, eos), (
            text,
            most,
            end,
        )


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
    assert expected_drafts([*text, *after], [6], 10, 99, ())[1] == due
    assert expected_drafts([*text, *after], [6], 1, 99, ())[1] == min(due, 1)
    assert expected_drafts([*text, *after], [6], 10, 7, ())[1] == 0, "one more token is the last"
    assert expected_drafts([*text, *after], [6], 10, 99, (3,))[1] == 0, "what ends a text is not proposed"
