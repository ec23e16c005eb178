"""Counts what prompt lookup guesses while tokens are made: an effect, whatever was asked for."""

from typing import Any

from transformers.generation.candidate_generator import PromptLookupCandidateGenerator


class Lookups:
    """Counts while it is entered; costs one addition a step, and nothing where nothing is looked up."""

    def __init__(self) -> None:
        self.lookups = 0
        self.guessed = 0

    def __enter__(self) -> "Lookups":
        self._plain = PromptLookupCandidateGenerator.get_candidates
        PromptLookupCandidateGenerator.get_candidates = self._counting(self._plain)
        return self

    def __exit__(self, *exc: object) -> None:
        PromptLookupCandidateGenerator.get_candidates = self._plain

    def _counting(self, plain: Any) -> Any:
        def get_candidates(generator: Any, input_ids: Any, **kwargs: Any) -> Any:
            found = plain(generator, input_ids, **kwargs)
            self.lookups += 1
            self.guessed += found[0].shape[1] - input_ids.shape[1]
            return found

        return get_candidates

    def counts(self, tokens: int, steps: int) -> dict[str, float]:
        """For `Decoder.counts`: what a run of so many tokens in so many steps looked up, guessed and could keep."""
        if not self.lookups:
            return {"lookups": 0.0}
        counted = {"lookups": self.lookups, "steps": steps, "guessed": self.guessed, "accepted": tokens - steps}
        return {name: float(count) for name, count in counted.items()}
