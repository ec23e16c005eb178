"""Pads prompts, so that the model sees few lengths, and makes compiled sizes symbolic."""

import contextlib
from typing import Any, Literal

import torch
from torch.fx.experimental import _config as symbolic_shapes

from tokendyno.backend import counts
from tokendyno.backend.plan import ShapesKind
from tokendyno.backend.predict.lengths import rounded
from tokendyno.backend.worker.prompt.prompt import Prompt


def pad(
    prompt: Prompt, shapes: ShapesKind, pad_id: int = 0, side: Literal["left", "right"] = "left", most: int = 0
) -> Prompt:
    """The prompt padded to its rounded length, with padding masked; the same prompt where none is needed.

    A decoder generates on the right, so it is padded on the left; padding takes no positions. An encoder counts
    positions from the left, masked or not, so it is padded on the right, up to `most` positions.
    """
    length = rounded(shapes, prompt.tokens)
    more = (min(length, most) if most else length) - prompt.tokens
    if more <= 0:
        return prompt
    where = (more, 0) if side == "left" else (0, more)
    ids = torch.nn.functional.pad(prompt.ids, where, value=pad_id)
    mask = torch.nn.functional.pad(prompt.mask, where, value=0)
    share = more / (prompt.tokens + more)
    note = f"{prompt.tokens:,} prompt tokens padded to {prompt.tokens + more:,}: {share:.0%} of the prompt is padding"
    return Prompt(ids, mask, [*prompt.notes, note])


def symbolic_sizes(shapes: ShapesKind) -> Any:
    """Context of anything that may compile: with `dynamic`, equal sizes stay two symbols."""
    if shapes == "dynamic":
        return symbolic_shapes.patch(use_duck_shape=False)
    return contextlib.nullcontext()


def padding_counts(prompt: Prompt, positions: int) -> counts.Prompt:
    """How many of a row's positions are padding. `positions`: what the model has seen, by cache or output."""
    return counts.Prompt(positions=positions, padding=positions - int((prompt.mask[0] != 0).sum()))
