"""Counts the positions that passes through the model are given during generation, whoever makes them."""

from collections.abc import Sequence
from typing import Any

import torch

from tokendyno.backend.counts import Prefill
from tokendyno.backend.plan import GeneratePlan


class PassCounter:
    """Watches calls of the model's input embedding while it is entered; costs an addition a pass.

    Where steps are compiled or replayed, counting them would change or miss what runs. A prompt in chunks is read by
    the model's own code even then: its passes are noted, and the hook is gone before the first step. A prompt that is
    read by a captured pass should need none.

    positions  of a row, summed over the passes; None where they cannot be counted
    read       ids (B, tokens) of each pass until the prompt was read: the last one may have drafts behind it
    """

    def __init__(self, model: Any, plan: GeneratePlan, prompt: torch.Tensor) -> None:
        hidden = plan.compile_mode is not None or plan.cuda_graphs == "manual"
        watched = not hidden or plan.prefill_chunk or plan.prefill_graphs
        self._watched = model.get_input_embeddings() if watched else None
        self._chunk, self._prompt = plan.prefill_chunk or prompt.shape[1], prompt
        self.positions: int | None = None if hidden else 0
        self.read: list[Any] = []
        self._left = prompt.shape[1]

    def __enter__(self) -> "PassCounter":
        if self._watched is not None:
            self._hook = self._watched.register_forward_pre_hook(self._add, prepend=True)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._watched is not None:
            self._hook.remove()

    def _add(self, _: object, given: Sequence[Any]) -> None:
        ids = given[0]  # (rows, tokens); rows that are left out count as if they were positions
        tokens = min(ids.shape[-1], ids.numel() // len(self._prompt))
        if self._left > 0:
            self.read.append(given[0])
            self._left -= tokens
        if self.positions is not None:
            self.positions += tokens
        elif self._left <= 0:
            self._hook.remove()

    def counts(self) -> Prefill:
        """Of the passes that read the prompt, where any was seen."""
        planned = self._prompt.split(self._chunk, -1)
        last = self.read[-1][:, : planned[-1].shape[1]]  # without drafts behind the prompt
        return Prefill(
            prompt_passes=len(self.read),
            widest_prompt_pass=max(ids.shape[-1] for ids in self.read),
            planned_prompt_passes=sum(map(torch.equal, [*self.read[:-1], last], planned)),
        )
