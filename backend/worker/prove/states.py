"""Holds the hidden states that a measured forward pass gave against those of the model's own code."""

from typing import Any

import torch

from backend.counts import RunCounts

ROUNDING = {torch.float32: 1e-3}
ROUNDING_OF_16_BITS = 0.05
"""The largest difference of a position's states, as a share of their length, that orders of summation make. States of
another text differ by about their length. Our choice."""


def held_against_pass(model: Any, ids: Any, mask: Any, states: Any) -> RunCounts:
    """Positions of `states` (B, S, H), padding not counted, and those that differ from a pass over ids and mask (B, S).

    A replay reads what lies where it was captured: only what it computed shows which text that was.
    """
    with torch.inference_mode():
        wanted = model(input_ids=ids, attention_mask=mask)[0].float()
        counted = mask.bool()
        if states.shape != wanted.shape:
            return RunCounts(checked_positions=float(counted.sum()), strange_positions=float(counted.sum()))
        apart = (states.float() - wanted).norm(dim=-1)
        same = apart <= wanted.norm(dim=-1) * ROUNDING.get(states.dtype, ROUNDING_OF_16_BITS)  # NaN is not
        return RunCounts(
            checked_positions=float(counted.sum()), strange_positions=float((counted & ~same).sum())
        )  # fmt: skip
