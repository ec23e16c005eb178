"""Counts draft tokens proposed by prompt lookup during generation."""

from typing import Any

from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

from backend.counts import RunCounts


class DraftCounter:
    """Counts while it is entered, whatever the plan says; costs one addition a step, and nothing without lookups."""

    def __init__(self) -> None:
        self.lookups = 0
        self.draft_tokens = 0

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
            self.draft_tokens += found[0].shape[1] - input_ids.shape[1]
            return found

        return get_candidates

    def counts(self, tokens: int, steps: int) -> RunCounts:
        """Lookups, draft tokens and accepted tokens of a run that generated so many tokens in so many steps."""
        if not self.lookups:
            return RunCounts(lookups=0.0)
        return RunCounts(
            lookups=float(self.lookups),
            steps=float(steps),
            draft_tokens=float(self.draft_tokens),
            accepted_tokens=float(tokens - steps),
        )
