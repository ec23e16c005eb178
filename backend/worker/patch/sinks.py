"""Attention without its sinks: another model than the one that was trained, to see what sinks are for."""

from typing import Any

import torch


def drop_sinks(model: Any) -> None:
    """A sink is a learned score beside those of the tokens that takes a share of the softmax and gives nothing for it.
    At the least number of its format that share is 0."""
    for module in model.modules():
        sinks = getattr(module, "sinks", None)
        if isinstance(sinks, torch.nn.Parameter):
            sinks.data.fill_(torch.finfo(sinks.dtype).min)
