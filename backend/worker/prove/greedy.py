"""Whether a greedy text is the model's: what draft tokens must pass, however many of them are verified at once."""

from collections.abc import Sequence
from typing import Any

import torch

from backend.counts import RunCounts

MOST_CHECKED = 64
"""Generated tokens, the last ones: the logits of a position take as many numbers as the vocabulary."""
MOST_TOKENS = 4_096
"""Of a whole text: its pass is made without a cache."""


def checked(model: Any, prompt: Sequence[int], generated: Sequence[int]) -> RunCounts:
    """Counts, of the last tokens of a text, those that are neither of the two likeliest ones there.

    Sums that are ordered otherwise may swap those two, and no others. Nothing is counted where the text is too long.
    """
    ids = torch.tensor([[*prompt, *generated]], device=model.device)
    new = min(len(generated), MOST_CHECKED)
    if not new or ids.shape[1] > MOST_TOKENS:
        return RunCounts()
    with torch.inference_mode():
        logits = model(input_ids=ids[:, :-1], use_cache=False, logits_to_keep=new).logits[0]
        strange = (logits.topk(2).indices != ids[0, -new:, None]).all(-1).sum()
    return RunCounts(checked_tokens=float(new), strange_tokens=float(strange))
