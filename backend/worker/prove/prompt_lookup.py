"""Counts draft tokens proposed by prompt lookup during generation."""

import itertools
from collections.abc import Collection, Sequence
from typing import Any

from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

from tokendyno.backend.counts import Drafts

_LONGEST = 2
"""Tokens that are looked for at most: the default of `generate`."""


class DraftCounter:
    """Counts while it is entered, whatever the plan says; costs two additions a step, and nothing without lookups."""

    def __init__(self) -> None:
        self.lookups = 0
        self.lengths: list[int] = []  # of the texts that were looked in
        self.drafted: list[int] = []  # how many draft tokens each proposed

    @property
    def draft_tokens(self) -> int:
        """That all of them proposed."""
        return sum(self.drafted)

    def __enter__(self) -> "DraftCounter":
        self._plain = PromptLookupCandidateGenerator.get_candidates
        PromptLookupCandidateGenerator.get_candidates = self._counting(self._plain)
        return self

    def __exit__(self, *exc: object) -> None:
        PromptLookupCandidateGenerator.get_candidates = self._plain

    def _counting(self, plain: Any) -> Any:
        def get_candidates(generator: Any, input_ids: Any, **kwargs: Any) -> Any:
            found = plain(generator, input_ids, **kwargs)
            self.lookups += 1
            self.lengths.append(input_ids.shape[1])
            self.drafted.append(found[0].shape[1] - input_ids.shape[1])
            return found

        return get_candidates

    def counts(self, tokens: int, steps: int) -> Drafts:
        """Lookups, draft tokens and accepted tokens of a run that generated so many tokens in so many steps."""
        if not self.lookups:
            return Drafts()
        return Drafts(lookups=self.lookups, steps=steps, draft_tokens=self.draft_tokens, accepted_tokens=tokens - steps)


def expected_drafts(ids: Sequence[int], lengths: Sequence[int], most: int, end: int, eos: Collection[int]) -> int:
    """How many draft tokens look-ups in the beginnings of a text should propose: up to `most` that once followed the
    newest two tokens, else the newest one, first found from the left; as transformers' generation does, computed anew.

    ids: of the whole text; end: how long it may become; eos: ids that end it, which are not proposed
    """
    return sum(len(_drafts(ids[:length], most, end, eos)) for length in lengths if length + 1 != end)


def expected_accepted(ids: Sequence[int], lengths: Sequence[int], most: int, end: int, eos: Collection[int]) -> int:
    """How many of them a greedy text goes on with: up to the first other one, and without each step's own token."""
    due = 0
    for length in (length for length in lengths if length + 1 != end):
        drafts, after = _drafts(ids[:length], most, end, eos), ids[length:-1]
        alike = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(drafts, after, strict=False))
        due += sum(1 for _ in alike)
    return due


def _drafts(text: Sequence[int], most: int, end: int, eos: Collection[int]) -> Sequence[int]:
    for size in range(min(_LONGEST, len(text) - 1), 0, -1):
        newest = text[-size:]
        for place in range(len(text) - size):
            if text[place : place + size] == newest:
                found = text[place + size : min(place + size + most, end)]
                return list(itertools.takewhile(lambda one: one not in eos, found))
    return []
