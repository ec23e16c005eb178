"""Answers that rank 0 gives to ranks on other machines, which share no memory with it."""

import torch
import torch.distributed as dist


class BroadcastAnswers:
    """One rank's view: a byte for each question, through a gloo group of its own. Who waits raises where another rank
    is gone."""

    def __init__(self) -> None:
        self._group = dist.new_group(backend="gloo")
        self._answer = torch.zeros(1, dtype=torch.uint8, device="cpu")

    def agree(self, answer: bool) -> bool:
        """Rank 0's answer to the next question."""
        self._answer.fill_(answer)
        dist.broadcast(self._answer, 0, group=self._group)
        return bool(self._answer)
