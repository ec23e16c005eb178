"""What a proof finds is true of the measured run only where that had the same code and the same tensors."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest
import torch
import transformers.models.llama.modeling_llama as llama_code
from torch.overrides import BaseTorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AttentionInterface, DynamicCache
from transformers.cache_utils import DynamicLayer
from transformers.integrations import moe, sdpa_attention
from transformers.integrations.moe import ExpertsInterface

from backend.optimizations.proof import NOT_HELD, Held
from backend.plan import GeneratePlan
from backend.worker.prove.measured_code import THE_MODEL, MeasuredCode
from backend.worker.prove.passes import PassCounter
from tests.support.tiny_models import build, tiny

ATTENTION = [f"model.layers.{place}.self_attn" for place in range(4)]


def test_nothing_is_found_where_nothing_was_exchanged() -> None:
    model = copy.deepcopy(tiny("gpt_oss"))
    code = MeasuredCode(model)
    with torch.inference_mode():
        model(torch.tensor([[1, 2, 3]]))
    model.model.layers[0].mlp.register_forward_hook(lambda *_: None).remove()
    held = code.add_to(NOT_HELD, model)
    assert not held.swapped and not held.modules
    assert (held.parts["attention"], held.parts["mixture"]) == (4, 4)


def other_forward(layer: Any) -> None:
    layer.mlp.up_proj.forward = lambda x: x


def other_module(layer: Any) -> None:
    layer.mlp.up_proj = copy.deepcopy(layer.mlp.up_proj)


def other_weight(layer: Any) -> None:
    layer.mlp.up_proj.weight = torch.nn.Parameter(layer.mlp.up_proj.weight.clone())


def other_memory(layer: Any) -> None:
    layer.mlp.up_proj.weight.data = layer.mlp.up_proj.weight.data.clone()


def a_hook(layer: Any) -> None:
    layer.mlp.up_proj.register_forward_hook(lambda *_: None)


def one_module_more(layer: Any) -> None:
    layer.mlp.more = torch.nn.Identity()


CHANGES: list[Callable[[Any], None]] = [
    other_forward, other_module, other_weight, other_memory, a_hook, one_module_more,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_whatever_is_exchanged_in_a_module_is_of_its_part(change: Callable[[Any], None]) -> None:
    model = copy.deepcopy(tiny("llama"))
    code = MeasuredCode(model)
    change(model.model.layers[2])
    held = code.add_to(NOT_HELD, model)
    assert held.swapped == {"other": ["model.layers.2.mlp"]}
    assert held.modules <= {"model.layers.2.mlp.up_proj", "model.layers.2.mlp.more"}


def test_the_model_s_own_method_is_nobody_s_part() -> None:
    model = build("llama")
    code = MeasuredCode(model)
    model.forward = lambda **more: None
    assert code.add_to(NOT_HELD, model).swapped == {"other": [THE_MODEL]}


def test_a_method_of_a_class_is_that_of_all_its_modules() -> None:
    code = MeasuredCode(tiny("llama"))
    with mock.patch.object(llama_code.LlamaAttention, "forward", lambda *_: None):
        assert code.add_to(NOT_HELD, tiny("llama")).swapped == {"attention": ATTENTION}
    assert not code.add_to(NOT_HELD, tiny("llama")).swapped


@pytest.mark.parametrize(
    ("patch", "kind"),
    [
        (lambda: mock.patch.object(llama_code, "eager_attention_forward", print), "attention"),
        (lambda: mock.patch.object(llama_code, "apply_rotary_pos_emb", print), "attention"),
        (lambda: mock.patch.object(torch.nn.functional, "scaled_dot_product_attention", print), "attention"),
        (lambda: mock.patch.dict(AttentionInterface._global_mapping, {"sdpa": print}), "attention"),
        (lambda: mock.patch.dict(ExpertsInterface._global_mapping, {"grouped_mm": print}), "mixture"),
        (lambda: mock.patch.object(torch.nn.functional, "linear", print), "other"),
        (lambda: mock.patch.object(moe, "_grouped_mm", print), "mixture"),
        (lambda: mock.patch.object(sdpa_attention, "repeat_kv", print), "attention"),
        (lambda: mock.patch.object(llama_code.LlamaAttention, "__call__", print), "attention"),
    ],
)
def test_a_function_is_that_of_all_parts_that_call_it(patch: Any, kind: Any) -> None:
    code = MeasuredCode(tiny("llama"))
    with patch():
        swapped = code.add_to(NOT_HELD, tiny("llama")).swapped
    every = {"attention": ATTENTION, "mixture": [], "other": ["torch.nn.functional.linear"]}
    assert swapped == {kind: every[kind]}


def with_value(where: Any, name: str, value: Any) -> Callable[[], Any]:
    """Also of what cannot be deleted, as a patch would."""

    @contextmanager
    def changed() -> Iterator[None]:
        before = getattr(where, name)
        setattr(where, name, value)
        try:
            yield
        finally:
            setattr(where, name, before)

    return changed


@pytest.mark.parametrize(
    ("patch", "kind", "told"),
    [
        (with_value(tiny("llama").config, "_attn_implementation", "flex_attention"), "attention", ATTENTION),
        (with_value(tiny("llama").config, "_experts_implementation", "grouped_mm"), "mixture", []),
        (with_value(AttentionInterface, "get_interface", print), "attention", ATTENTION),
        (with_value(ExpertsInterface, "get_interface", print), "mixture", []),
        (with_value(torch.backends.cuda.matmul, "fp32_precision", "tf32"), "other", ["float32 products on a GPU"]),
        (with_value(torch.backends.mkldnn.matmul, "fp32_precision", "bf16"), "other", ["float32 products on a CPU"]),
        (lambda: torch.autocast("cpu", torch.bfloat16), "other", ["autocast"]),
        (lambda: torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH), "attention", ATTENTION),
        (BaseTorchFunctionMode, "other", ["modes that see every operator"]),
        (TorchDispatchMode, "other", ["modes that see every operator"]),
        (with_value(torch.nn.Module, "_call_impl", print), "other", ["torch.nn.Module._call_impl"]),
    ],
    ids=[
        "attention", "experts", "attention's choice", "experts' choice", "GPU", "CPU", "autocast", "kernels",
        "functions", "operators", "calls",
    ],
)  # fmt: skip
def test_what_decides_how_parts_compute_counts_as_they_do(patch: Any, kind: Any, told: list[str]) -> None:
    code = MeasuredCode(tiny("llama"))
    with patch():
        assert code.add_to(NOT_HELD, tiny("llama")).swapped == {kind: told}
        inside = MeasuredCode(tiny("llama"))
    assert not code.add_to(NOT_HELD, tiny("llama")).swapped
    assert inside.add_to(NOT_HELD, tiny("llama")).swapped == {kind: told}


def test_a_hook_of_every_module_is_seen() -> None:
    code = MeasuredCode(tiny("llama"))
    hook = torch.nn.modules.module.register_module_forward_hook(lambda *_: None)
    try:
        (told,) = code.add_to(NOT_HELD, tiny("llama")).swapped["other"]
    finally:
        hook.remove()
    assert told == f"hook {hook.id} of every module"


def test_a_cache_with_other_methods_is_counted_by_its_layers() -> None:
    cache = DynamicCache()
    for layer in range(3):
        cache.update(torch.ones(1, 2, 4, 8), torch.ones(1, 2, 4, 8), layer)
    code = MeasuredCode(tiny("llama"), cache)
    assert code.changed_layers(cache) == 0
    cache.layers[1].update = lambda *_: None
    assert code.changed_layers(cache) == 1
    del cache.layers[1].update
    with mock.patch.object(DynamicLayer, "update", lambda *_: None):
        assert code.changed_layers(cache) == 3
        inside = MeasuredCode(tiny("llama"), cache)
    with mock.patch.object(DynamicCache, "update", lambda *_: None, create=True):
        assert code.changed_layers(cache) == 3
    assert (code.changed_layers(cache), inside.changed_layers(cache)) == (0, 3)
    assert MeasuredCode(tiny("llama")).changed_layers(None) == 0


def test_further_steps_that_set_something_are_compared_as_they_were() -> None:
    with mock.patch.object(torch.nn.functional, "linear", print):
        code, alike = MeasuredCode(tiny("llama")), MeasuredCode(tiny("llama"))
    assert code.add_to(NOT_HELD, tiny("llama")).swapped and not code.add_to(NOT_HELD, tiny("llama"), alike).swapped


def test_what_else_was_found_stays() -> None:
    held = Held(odd={"attention": ["a"]}, unheld="why")
    found = MeasuredCode(tiny("llama")).add_to(held, tiny("llama"))
    assert (found.odd, found.unheld) == (held.odd, "why") and found.parts["attention"] == 4


@pytest.mark.parametrize("plan", [GeneratePlan(), GeneratePlan(compile_mode="default")])
def test_it_is_taken_when_a_generation_ends(plan: GeneratePlan) -> None:
    model, ids = build("llama"), torch.tensor([[5, 6, 7]])
    with PassCounter(model, plan, ids) as passes:
        assert passes.code is None
        model.model.layers[0].mlp.forward = lambda x: x
    del model.model.layers[0].mlp.forward
    assert passes.code is not None
    assert passes.code.add_to(NOT_HELD, model).swapped == {"other": ["model.layers.0.mlp"]}
    assert model.get_input_embeddings()._forward_pre_hooks == {}, "the counter's own hook"
