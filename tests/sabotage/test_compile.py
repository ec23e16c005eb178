"""compile: torch.compile removed, kept from layers or steps, or handed to a backend that compiles nothing."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest
import torch
from transformers import PreTrainedModel
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.bert.modeling_bert import BertLayer
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

from tests.sabotage.saboteur import Patch, Tier, Which, table, tests_of
from tests.sabotage.small_models import LAYERS, bert

STATIC, GROWING = {"cache": "static"}, {"cache": "dynamic"}
OWN = STATIC | {"loop": "own"}


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Nothing that an earlier test compiled is used again."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def removed() -> Any:
    return mock.patch.object(torch, "compile", lambda model, **how: model)


def traced_alone() -> Any:
    original = torch.compile
    return mock.patch.object(torch, "compile", lambda model, **_: original(model, fullgraph=False, backend="aot_eager"))


def idle_inductor() -> Any:
    from torch._inductor import compile_fx

    return mock.patch.object(compile_fx, "compile_fx", lambda graph, *_, **__: graph.forward)


def eager_layers(which: Which) -> Patch:
    """Those decoder layers are hidden from the compiler."""
    original = LlamaDecoderLayer.forward
    hidden = torch.compiler.disable(original)

    def forward(layer: Any, *args: Any, **kwargs: Any) -> Any:
        return (hidden if which(layer.self_attn.layer_idx) else original)(layer, *args, **kwargs)

    return lambda: mock.patch.object(LlamaDecoderLayer, "forward", forward)


def eager_attention() -> Any:
    hidden = torch.compiler.disable(ALL_ATTENTION_FUNCTIONS["sdpa"])
    return mock.patch.dict(ALL_ATTENTION_FUNCTIONS._global_mapping, {"sdpa": hidden})


@contextmanager
def one_step_in_three() -> Iterator[None]:
    original, count = PreTrainedModel.get_compiled_call, itertools.count()

    def get_compiled_call(model: Any, config: Any) -> Any:
        compiled = original(model, config)
        return lambda *args, **kwargs: (compiled if next(count) % 3 == 0 else model)(*args, **kwargs)

    with mock.patch.object(PreTrainedModel, "get_compiled_call", get_compiled_call):
        yield


def model_not_compiled() -> Any:
    return mock.patch.object(torch.nn.Module, "compile", lambda model, **how: None)


def nothing_where_it_is_compiled() -> Any:
    original = BertLayer.forward

    def forward(self: Any, states: Any, *args: Any, **kwargs: Any) -> Any:
        output = original(self, states, *args, **kwargs)
        return output * 0 + states if torch.compiler.is_compiling() else output

    return mock.patch.object(BertLayer, "forward", forward)


ALL, HALF, ONE = (eager_layers(which) for which in (lambda i: True, lambda i: i >= LAYERS // 2, lambda i: i == 1))
NEVER = {
    "nothing is compiled": removed,
    "a backend that compiles nothing": idle_inductor,
    "traced, but not compiled": traced_alone,
}
IN_PART = {
    "no layer is compiled": ALL,
    "half of the layers are not": HALF,
    "one layer is not": ONE,
    "no attention is compiled": eager_attention,
    "one step in three is compiled": one_step_in_three,
}
GROWING_NEVER = {"the model is not compiled for a growing cache": model_not_compiled}
GROWING_IN_PART = {"no layer is compiled for a growing cache": ALL}
OWN_NEVER = {"the step of the custom loop is not compiled": removed}
ENCODER = {"layers that give what they got": nothing_where_it_is_compiled}
COMPILING: Tier = "full"
"""Of what hands code to a C++ compiler: most of a minute for the first of an arm. Every control does."""
SABOTEURS = [
    *table("compile", {"default": NEVER}, STATIC),
    *table("compile", {"default": OWN_NEVER}, OWN),
    *table("compile", {"default": GROWING_NEVER}, GROWING),
    *table("compile", {"default": IN_PART}, STATIC, tier=COMPILING),
    *table("compile", {"default": GROWING_IN_PART}, GROWING, tier=COMPILING),
    *table("compile", {"default": ENCODER}, model=bert, tier=COMPILING),
]
COMPILES = pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(600)
test_sabotage_turns_a_row, test_the_control_is_verified = tests_of(SABOTEURS, *COMPILES)
