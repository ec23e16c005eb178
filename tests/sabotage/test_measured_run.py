"""What is broken while the measured run lasts, and mended before anything is proved."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from transformers.cache_utils import BaseQuantizedLayer
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

from tests.sabotage.saboteur import Sabotage, tests_of
from tests.sabotage.small_models import llama
from tests.sabotage.test_tokens import measured


def one_text_for_all(model: Any) -> Callable[[], None]:
    """A layer computes the first text of a batch and gives every other the same."""
    plain = LlamaDecoderLayer.__call__

    @functools.wraps(plain)
    def call(self: Any, states: torch.Tensor, **more: Any) -> Any:
        states.copy_(states[:1].expand_as(states))
        return plain(self, states, **more)

    LlamaDecoderLayer.__call__ = call

    def mend() -> None:
        LlamaDecoderLayer.__call__ = plain

    return mend


def copies_handed_out(model: Any) -> Callable[[], None]:
    """A quantized cache keeps what it is given, too, and hands that out."""
    plain = BaseQuantizedLayer.update

    def update(self: Any, keys: torch.Tensor, values: torch.Tensor, *more: Any) -> Any:
        before = getattr(self, "copies", None)
        both = keys, values
        if before is not None:
            both = torch.cat([before[0], keys], 2), torch.cat([before[1], values], 2)
        plain(self, keys, values, *more)
        self.copies = both
        return both

    BaseQuantizedLayer.update = update

    def mend() -> None:
        BaseQuantizedLayer.update = plain

    return mend


class InFloat32(TorchFunctionMode):  # type: ignore[misc]
    """Every linear layer multiplies in float32."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.nn.functional.linear:
            return function(*(one.float() for one in args[:2]), *args[2:]).to(args[0].dtype)
        return function(*args, **(kwargs or {}))


def in_float32(model: Any) -> Callable[[], None]:
    mode = InFloat32()
    mode.__enter__()
    return lambda: mode.__exit__(None, None, None)


SABOTEURS = [
    Sabotage("dtype", "float32", "a class's calls, while measured", measured(one_text_for_all), (), llama,
             (("batch_size", 4),)),
    Sabotage("dtype", "bfloat16", "in float32, while measured", measured(in_float32), (), llama),
    Sabotage("cache", "quantized-fp8", "copies are handed out, while measured", measured(copies_handed_out), (),
             llama),
]  # fmt: skip
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)
