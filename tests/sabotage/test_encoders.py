"""Encoders whose measured passes, or whose compiled code, compute something else than the model."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import pytest
import torch
from transformers.models.bert.modeling_bert import BertLayer

from backend.worker.runners.forward import ForwardRunner
from tests.sabotage.saboteur import Sabotage, tests_of
from tests.sabotage.small_models import bert


def while_measured(enter: Callable[[Any], AbstractContextManager[Any]]) -> Callable[[], Any]:
    """The model is broken for the measured passes alone."""
    plain = ForwardRunner._passes

    def passes(self: Any, plan: Any, prompt: Any, most: int, *done: Any) -> int:
        if not done:
            return plain(self, plan, prompt, most)
        with enter(self.model.model):
            return plain(self, plan, prompt, most, *done)

    return lambda: mock.patch.object(ForwardRunner, "_passes", passes)


def half_of_the_layers(model: Any) -> Any:
    layers = model.encoder.layer
    return mock.patch.object(layers, "_modules", dict(list(layers._modules.items())[: len(layers) // 2]))


def larger_embeddings(model: Any) -> Any:
    plain = model.embeddings.forward
    return mock.patch.object(model.embeddings, "forward", lambda *given, **more: plain(*given, **more) * 1.5)


def every_other_pass(model: Any) -> Any:
    """Each second pass gives what the one before gave."""
    plain, given = model.forward, list[Any]()

    def forward(*args: Any, **more: Any) -> Any:
        given.append(given[-1] if len(given) % 2 else plain(*args, **more))
        return given[-1]

    return mock.patch.object(model, "forward", forward)


def nothing_where_it_is_compiled() -> Any:
    plain = BertLayer.forward

    def forward(self: Any, states: Any, *given: Any, **more: Any) -> Any:
        found = plain(self, states, *given, **more)
        return found * 0 + states if torch.compiler.is_compiling() else found

    return mock.patch.object(BertLayer, "forward", forward)


SABOTEURS = [
    Sabotage("dtype", "float32", "half of the layers", while_measured(half_of_the_layers), model=bert),
    Sabotage("dtype", "float32", "each second pass is not made", while_measured(every_other_pass), model=bert),
    Sabotage(
        "dtype", "float32", "other states before the layers", while_measured(larger_embeddings), model=bert,
        tier="full",
    ),
    Sabotage(
        "compile", "default", "layers that give what they got", nothing_where_it_is_compiled, model=bert, tier="full",
    ),
]  # fmt: skip
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(
    SABOTEURS, pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)
)
