"""Counts draft tokens proposed by prompt lookup during generation."""

import itertools
from collections.abc import Collection, Sequence
from typing import Any
from unittest import mock

from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

from tokendyno.backend.counts import Drafts

_LONGEST = 2
"""Tokens of the n-gram that is looked for at most: the default of `generate`."""


class DraftCounter:
    """Counts while it is entered, whatever the plan says; costs two additions a step, and nothing without lookups."""

    def __init__(self) -> None:
        self.lookups = self.draft_tokens = 0
        self.lengths: list[int] = []  # of the texts that were looked in

    def __enter__(self) -> "DraftCounter":
        counting = self._counting(PromptLookupCandidateGenerator.get_candidates)
        self._patch = mock.patch.object(PromptLookupCandidateGenerator, "get_candidates", counting)
        self._patch.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._patch.stop()

    def _counting(self, original: Any) -> Any:
        def get_candidates(generator: Any, input_ids: Any, **kwargs: Any) -> Any:
            candidates = original(generator, input_ids, **kwargs)
            self.lookups += 1
            self.lengths.append(input_ids.shape[1])
            self.draft_tokens += candidates[0].shape[1] - input_ids.shape[1]
            return candidates

        return get_candidates

    def counts(self, tokens: int, steps: int) -> Drafts:
        """Lookups, draft tokens and accepted tokens of a run that generated so many tokens in so many steps."""
        if not self.lookups:
            return Drafts()
        return Drafts(lookups=self.lookups, steps=steps, draft_tokens=self.draft_tokens, accepted_tokens=tokens - steps)


def expected_drafts(ids: Sequence[int], lengths: Sequence[int], most: int, end: int, eos: Collection[int]) -> int:
    """How many draft tokens lookups in the beginnings of a text should propose, by the rule of transformers: up to
    `most` tokens that followed the first earlier occurrence of the newest two tokens, else of the newest one.

    ids      of the whole text
    lengths  of the beginnings that were looked in
    end      how long the text may become
    eos      ids that end a text: neither they nor what follows is proposed
    """
    return sum(len(_drafts(ids[:length], most, end, eos)) for length in lengths if length + 1 != end)


def expected_accepted(ids: Sequence[int], lengths: Sequence[int], most: int, end: int, eos: Collection[int]) -> int:
    """How many of those drafts the greedy text accepts: up to the first that differs, each step's own token apart."""
    due = 0
    for length in (length for length in lengths if length + 1 != end):
        drafts, continuation = _drafts(ids[:length], most, end, eos), ids[length:-1]
        accepted = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(drafts, continuation, strict=False))
        due += sum(1 for _ in accepted)
    return due


def _drafts(text: Sequence[int], most: int, end: int, eos: Collection[int]) -> Sequence[int]:
    for size in range(min(_LONGEST, len(text) - 1), 0, -1):
        newest = text[-size:]
        for place in range(len(text) - size):
            if text[place : place + size] == newest:
                following = text[place + size : min(place + size + most, end)]
                return list(itertools.takewhile(lambda token: token not in eos, following))
    return []
