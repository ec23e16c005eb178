"""Pads prompts, so that the model meets few lengths, and lets compiled sizes be symbols."""

import contextlib
from typing import Any, Literal

import torch
from torch.fx.experimental import _config as symbolic_shapes

from backend.optimizations.lengths import rounded
from backend.plan import ShapesKind
from backend.worker.prompt import Prompt


def pad(
    prompt: Prompt, shapes: ShapesKind, pad_id: int = 0, side: Literal["left", "right"] = "left", most: int = 0
) -> Prompt:
    """The prompt at its rounded length, masked where it is padding; the same prompt where there is none to add.

    A model that makes tokens goes on at the right, so padding stands on the left, and takes no positions. An encoder
    counts positions from the left, whatever is masked: its padding stands on the right, up to `most` positions.
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


def sizes(shapes: ShapesKind) -> Any:
    """Around what may compile. With `dynamic` two sizes that are equal by chance stay two symbols: else a cache of as
    many places as a head has numbers would be compiled for that length alone."""
    if shapes == "dynamic":
        return symbolic_shapes.patch(use_duck_shape=False)
    return contextlib.nullcontext()


def padding_counts(prompt: Prompt) -> dict[str, float]:
    """What the model was given, for `Decoder.counts`: positions of a row, how many of them are padding, the share."""
    padding = float((prompt.mask[0] == 0).sum())
    return {"positions": float(prompt.tokens), "padding": padding, "padding_share": padding / prompt.tokens}
