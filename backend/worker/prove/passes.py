"""Counts the passes in which a prompt is read, whoever makes them."""

from collections.abc import Sequence
from typing import Any

import torch

from tokendyno.backend.counts import Prefill
from tokendyno.backend.plan import GeneratePlan


class PassCounter:
    """Counts by a hook on the model's input embedding, which is gone before the first step.

    Where steps are compiled or replayed, a hook would change what runs, or miss it. A prompt in chunks is read by the
    model's own code even then. Where a captured pass should read the prompt, the hook is to see none.

    prompt_ids  (B, tokens) of each pass until the prompt was read: the last one may have drafts behind it
    """

    def __init__(self, model: Any, plan: GeneratePlan, prompt: torch.Tensor) -> None:
        hidden = plan.compile_mode is not None or plan.cuda_graphs == "manual"
        watched = not hidden or plan.prefill_chunk or plan.prefill_graphs
        self._embedding = model.get_input_embeddings() if watched else None
        self._chunk, self._prompt = plan.prefill_chunk or prompt.shape[1], prompt
        self.prompt_ids: list[Any] = []
        self._unread = prompt.shape[1]

    def __enter__(self) -> "PassCounter":
        if self._embedding is not None:
            self._hook = self._embedding.register_forward_pre_hook(self._add, prepend=True)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._embedding is not None:
            self._hook.remove()

    def _add(self, _: object, inputs: Sequence[Any]) -> None:
        ids = inputs[0]  # (rows, tokens); with fewer rows than the prompt has, tokens count in proportion
        tokens = min(ids.shape[-1], ids.numel() // len(self._prompt))
        self.prompt_ids.append(ids)
        self._unread -= tokens
        if self._unread <= 0:
            self._hook.remove()

    def counts(self) -> Prefill:
        """What the passes over the prompt were given. At least one was seen."""
        planned = self._prompt.split(self._chunk, -1)
        last = self.prompt_ids[-1][:, : planned[-1].shape[1]]  # without drafts behind the prompt
        return Prefill(
            prompt_passes=len(self.prompt_ids),
            widest_prompt_pass=max(ids.shape[-1] for ids in self.prompt_ids),
            planned_prompt_passes=sum(map(torch.equal, [*self.prompt_ids[:-1], last], planned)),
        )
