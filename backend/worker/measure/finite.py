"""A run whose scores are NaN or infinite fails: what is chosen from them is noise, and so is all that follows.

The best score of each choice is kept on the device and read once, after the run: no step waits for it. On a CPU only
what is not finite is kept: tensors between the blocks of a growing cache would keep these from being used again. Minus
infinity rules tokens out and is no fault; NaN and plus infinity are the best of any row that has them.
"""

import contextlib
import math
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from transformers import LogitsProcessor
from transformers.generation.candidate_generator import PromptLookupCandidateGenerator
from transformers.generation.continuous_batching.utils import stream_context

UNDO = (
    "Undo this arm's choices one by one; if it fails without them, copy or download the weights again, or choose "
    "another model."
)
_SMALL_RANGE = "float16 ends at 65,504, which models trained in bfloat16 may exceed: use dtype=bfloat16. "


class NotFinite(RuntimeError):
    """A run computed NaN or infinity. `advice`: what to do."""

    def __init__(self, sentence: str, advice: str) -> None:
        super().__init__(sentence)
        self.advice = advice


class BestScores:
    """The best scores of each choice in a run. `dtype`: in which the model computes."""

    def __init__(self, dtype: torch.dtype) -> None:
        self._dtype = dtype
        self._scores: list[Any] = []

    def take(self, best: Any) -> None:
        """Keep scores, a float32 tensor of any shape on one device. Nobody may write to it afterwards."""
        if best.device.type != "cpu" or not bool(best.isfinite().all()):
            self._scores.append(best.flatten())

    def forget(self) -> None:
        """Drop what was kept: it is of no run that counts."""
        self._scores.clear()

    def check(self) -> None:
        """Wait for the device, and forget what was kept. NotFinite if one of the scores is no finite number."""
        scores, self._scores = self._scores, []
        values = torch.cat(scores) if scores else torch.zeros(0)
        broken = values[~values.isfinite()].tolist()
        if broken:
            kind = "not a number (NaN)" if math.isnan(broken[0]) else "infinite"
            advice = _SMALL_RANGE + UNDO if self._dtype == torch.float16 else UNDO
            raise NotFinite(f"The model's outputs are {kind}.", advice)


class BestOfEach(LogitsProcessor):  # type: ignore[misc]
    """Keeps the best score of each row that `generate` chooses from. `sampled`: it draws, which from NaN on CUDA would
    end the process before anything was said."""

    def __init__(self, best: BestScores, sampled: bool) -> None:
        self._best, self._sampled = best, sampled

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Shapes: input_ids (B, length so far), scores (B, V) float32."""
        self._best.take(scores.amax(-1))
        return torch.nan_to_num_(scores, nan=0.0, posinf=0.0) if self._sampled else scores


@contextlib.contextmanager
def best_of_drafts(best: BestScores) -> Iterator[None]:
    """While entered, keeps the best score of each token that a step with drafts came to. A processor would be called
    for each draft token and not for each step."""
    original = PromptLookupCandidateGenerator.update_candidate_strategy

    def update(self: Any, input_ids: Any, scores: Any, num_matches: int) -> Any:
        """Shapes: input_ids (1, length with the new tokens), scores (1, drafts + 1, V)."""
        best.take(scores[:, : num_matches + 1].amax(-1))
        return original(self, input_ids, scores, num_matches)

    with mock.patch.object(PromptLookupCandidateGenerator, "update_candidate_strategy", update):
        yield


def watch_pages(processor: Any, best: BestScores) -> None:
    """Keep the best scores of all that this processor of continuous batching chooses from. Its steps may be captured,
    and padded: each writes into a tensor of a fixed address, and what counts is copied once the step was read."""
    io, runner = processor.inputs_and_outputs, processor.model_runner
    sample, read = runner._sample, io.prepare_batch_update
    by_address: dict[int, Any] = {}  # where a step's ids are written to, which steps under way do not share

    def sampling(scores: Any, output_ids: Any) -> None:
        """Shapes: scores (1, rows, V), output_ids (1 or 2, most rows)."""
        sample(scores, output_ids)
        maxima = by_address.get(output_ids.data_ptr())
        if maxima is None:
            maxima = by_address[output_ids.data_ptr()] = torch.zeros(output_ids.shape[1], device=scores.device)
        maxima[: scores.shape[1]].copy_(scores[0].amax(-1))

    def reading() -> Any:
        address = io.output_ids.data_ptr()
        update = read()
        states = [future.state.status.name for future in update[0] if future.has_new_token]
        unfinished = [row for row, state in enumerate(states) if state not in ("FINISHED", "PENDING")]
        if unfinished and address in by_address:
            rows = slice(len(states)) if len(unfinished) == len(states) else unfinished
            with stream_context(io.compute_stream):
                best.take(by_address[address][rows].clone())
        return update

    runner._sample = sampling
    io.prepare_batch_update = reading
