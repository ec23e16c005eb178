"""How a model predicts the tokens of a given text: log probabilities, and how far they are from another arm's."""

import os
from typing import Any

import torch
from transformers import LogitsProcessor

from tokendyno.backend.errors import InputError
from tokendyno.backend.messages import Scored


class Scores:
    """Takes the logits of each position, in any order; a position that is given again replaces what it was.

    keep     file for the distributions, "" for none
    against  file of the other arm's distributions, "" for none
    """

    def __init__(self, ids: list[int], vocabulary: int, keep: str = "", against: str = "") -> None:
        self.ids = ids
        shape = len(ids), vocabulary
        self._written, self._other = _file(keep, shape, new=True), _file(against, shape, new=False)
        self._predicted: dict[int, tuple[Any, Any, Any]] = {}

    def take(self, position: int, logits: Any) -> None:
        """Logits (V,) from which the token at that position is to be chosen."""
        log_probs = logits.float().log_softmax(-1)
        kl = torch.zeros((), device=log_probs.device)
        if self._other is not None:
            other_log_probs = self._other[position].to(log_probs.device)
            other_probs = other_log_probs.exp()
            kl = torch.where(other_probs > 0, other_probs * (other_log_probs - log_probs), 0.0).sum()
        if self._written is not None:
            self._written[position].copy_(log_probs)
        self._predicted[position] = (-log_probs[self.ids[position]], log_probs.argmax(), kl)

    def scored(self) -> Scored:
        """All positions, each of which must have been given."""
        nll, top, kl = zip(*(self._predicted[position] for position in range(len(self.ids))), strict=True)
        distances = torch.stack(kl).clamp(min=0).tolist() if self._other is not None else []
        return Scored(self.ids, torch.stack(nll).tolist(), torch.stack(top).tolist(), distances)


def _file(path: str, shape: tuple[int, int], new: bool) -> Any:
    """A float32 tensor (positions, vocabulary) in that file; None without a path. InputError if the disk is full."""
    if not path:
        return None
    size = shape[0] * shape[1]
    if new:
        try:
            with open(path, "wb") as file:
                if hasattr(os, "posix_fallocate"):  # macOS has none; a map of a full disk would kill the process
                    os.posix_fallocate(file.fileno(), 0, 4 * size)
        except OSError as error:
            raise InputError(
                f"The distributions of a text take {4 * size:,} bytes, which do not fit in {os.path.dirname(path)} "
                f"({error.strerror}). Free space there, set TOKENDYNO_CACHE to another disk, or use fewer positions."
            ) from error
    return torch.from_file(path, shared=new, size=size, dtype=torch.float32).view(shape)


class GivenText(LogitsProcessor):  # type: ignore[misc]
    """Lets `generate` choose the tokens of a given text, and keeps what it would have chosen from. `start`: tokens
    before the first one, padding included."""

    def __init__(self, scores: Scores, start: int) -> None:
        self._scores, self._start = scores, start

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        position = input_ids.shape[1] - self._start
        if not 0 <= position < len(self._scores.ids):
            return scores  # drafts may reach past the end of the text
        self._scores.take(position, scores[0])
        forced = torch.full_like(scores, -torch.inf)
        forced[:, self._scores.ids[position]] = 0
        return forced
