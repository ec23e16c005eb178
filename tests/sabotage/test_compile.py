"""torch.compile removed, kept from layers or steps, or handed to a backend that compiles nothing."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest

from tests.sabotage.saboteur import NOT_GREEN, Sabotage, tests_of
from tests.sabotage.small_models import LAYERS, llama

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(900)]
STATIC, GROWING = (("cache", "static"),), (("cache", "dynamic"),)
OWN = (*STATIC, ("loop", "own"))


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Nothing that an earlier test compiled is used again."""
    import torch

    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def removed() -> Any:
    import torch

    return mock.patch.object(torch, "compile", lambda model, **how: model)


def other_backend(name: str) -> Any:
    import torch

    plain = torch.compile
    how = {"fullgraph": False, "backend": name}
    return mock.patch.object(torch, "compile", lambda model, **_: plain(model, **how))


def idle_inductor() -> Any:
    from torch._inductor import compile_fx

    return mock.patch.object(compile_fx, "compile_fx", lambda graph, *_, **__: graph.forward)


@contextmanager
def eager_layers(which: Callable[[int], bool]) -> Iterator[None]:
    """Those decoder layers are hidden from the compiler."""
    import torch
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer

    plain = LlamaDecoderLayer.forward
    hidden = torch.compiler.disable(plain)

    def forward(layer: Any, *args: Any, **kwargs: Any) -> Any:
        return (hidden if which(layer.self_attn.layer_idx) else plain)(layer, *args, **kwargs)

    with mock.patch.object(LlamaDecoderLayer, "forward", forward):
        yield


@contextmanager
def eager_attention() -> Iterator[None]:
    import torch
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    hidden = torch.compiler.disable(ALL_ATTENTION_FUNCTIONS["sdpa"])
    with mock.patch.dict(ALL_ATTENTION_FUNCTIONS._global_mapping, {"sdpa": hidden}):
        yield


@contextmanager
def one_step_in_three() -> Iterator[None]:
    from transformers import PreTrainedModel

    plain, count = PreTrainedModel.get_compiled_call, itertools.count()

    def get_compiled_call(model: Any, config: Any) -> Any:
        compiled = plain(model, config)
        return lambda *args, **kwargs: (compiled if next(count) % 3 == 0 else model)(*args, **kwargs)

    with mock.patch.object(PreTrainedModel, "get_compiled_call", get_compiled_call):
        yield


def model_not_compiled() -> Any:
    import torch

    return mock.patch.object(torch.nn.Module, "compile", lambda model, **how: None)


def _compile(manner: str, patch: Any, beside: tuple[tuple[str, str], ...] = STATIC) -> Sabotage:
    return Sabotage("compile", "default", manner, patch, beside, llama, tier="full")


SABOTEURS = [
    _compile("nothing is compiled", removed),
    _compile("a backend that compiles nothing", idle_inductor),
    _compile("traced, but not compiled", lambda: other_backend("aot_eager")),
    _compile("no layer is compiled", lambda: eager_layers(lambda layer: True)),
    _compile("half of the layers are not", lambda: eager_layers(lambda layer: layer >= LAYERS // 2)),
    _compile("one layer is not", lambda: eager_layers(lambda layer: layer == 1)),
    _compile("no attention is compiled", eager_attention),
    _compile("one step in three is compiled", one_step_in_three),
    _compile("the step of the custom loop is not compiled", removed, OWN),
    _compile("the model is not compiled for a growing cache", model_not_compiled, GROWING),
    _compile("no layer is compiled for a growing cache", lambda: eager_layers(lambda layer: True), GROWING),
]
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("patch", "beside"),
    [(removed, STATIC), (lambda: other_backend("eager"), STATIC), (model_not_compiled, GROWING), (removed, OWN)],
    ids=["nothing is compiled", "another backend", "growing cache", "custom loop"],
)
def test_without_a_compiler_no_row_is_green(patch: Any, beside: Any) -> None:
    """Those that guard most, in a few seconds: nothing is compiled. Their controls are in the tier of all others."""
    with patch():
        row = _compile("", patch, beside).row()
    assert row.status in NOT_GREEN and row.finding.effective == "off", row
