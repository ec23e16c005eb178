"""What is counted without values, against real small models and the tensors of their caches."""

import contextlib
import functools
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from tests.support.counted_models import COUNTED
from tokendyno.backend.models.resolve import counted_facts
from tokendyno.backend.plan import DYNAMIC
from tokendyno.backend.predict.kv import kv_bytes
from tokendyno.backend.predict.weights import packed_matrices, weight_bytes
from tokendyno.backend.worker.prove.tensor_bytes import cache_bytes
from tools.tiny_config import tiny_config

SLOWEST = "attention or a state", "shared layers", "chunks"


def marked(names: Iterable[str]) -> list[Any]:
    """What takes seconds to count is full."""
    return [pytest.param(name, marks=pytest.mark.full if name in SLOWEST else ()) for name in names]


LENGTHS = (1, 5, 40)


@functools.cache
def counted(name: str) -> Any:
    """Of decoders without what a pass takes: that takes most of the time, and has tests of its own."""
    from tokendyno.backend.counter import model

    workspace: Any = mock.patch.object(model, "count_workspace", return_value={})
    with contextlib.nullcontext() if name == "an encoder" else workspace:
        return model.count(COUNTED[name])


def facts_of(name: str) -> Any:
    return counted_facts(COUNTED[name], counted(name))


def real(config: dict[str, Any]) -> Any:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(**config), dtype=torch.float32).eval()


@pytest.mark.parametrize("name", marked(name for name in COUNTED if name != "an encoder"))
def test_weights_and_cache_are_those_of_a_real_model(name: str) -> None:
    import torch
    from transformers import DynamicCache

    from tokendyno.backend.counter.cache import layer_tensors
    from tokendyno.backend.worker.measure.meter import sliding_layers

    config = COUNTED[name]
    facts, model = facts_of(name), real(config)
    weights = sum(tensor.nbytes for tensor in (*model.parameters(), *model.buffers()))
    assert weight_bytes(facts, "float32") == weights
    assert facts.parameters == sum(parameter.numel() for parameter in model.parameters())
    windows = sliding_layers(model.config)
    for length in LENGTHS:
        cache = DynamicCache(config=model.config.get_text_config(decoder=True))
        with torch.no_grad():
            model(input_ids=torch.ones((2, length), dtype=torch.long), past_key_values=cache, use_cache=True)
        stored = sum(tensor.nbytes for layer in cache.layers for _, tensor in layer_tensors(layer))
        expected = kv_bytes(facts, DYNAMIC, length, 2, 4)
        assert expected.total == stored, length
        measured = cache_bytes((slides, layer, 1) for slides, layer in zip(windows, cache.layers, strict=True))
        kinds = expected.latent, expected.fixed, expected.index
        assert measured == (expected.sliding, expected.unwindowed, *kinds), length


KINDS = {
    "multi-query": ("full", 2, 2 * 16),  # one KV head, where a guess by the query heads would say 4
    "latents": ("full", 2, 32 + 16),  # the compressed latent and the rotary key
    "chunks": ("sliding", 3, 2 * 2 * 16),
    "shared layers": ("full", 1, 2 * 2 * 16),  # 4 layers, of which 2 have a cache
    "attention or a state": ("fixed", 2, 0),
}


@pytest.mark.parametrize("name", marked(KINDS))
def test_the_kinds_of_layers_are_told_apart(name: str) -> None:
    kind, count, elements = KINDS[name]
    layers = [layer for layer in facts_of(name).cache_layers if layer.kind == kind]
    assert sum(layer.count for layer in layers) == count and {layer.elements for layer in layers} == {elements}


PAGED = {
    "multi-query": False,  # one KV head, for which continuous batching takes the number of query heads
    "experts by token": False,  # its mask is made of the new tokens alone
    "an encoder's decoder": True,
    "latents": False,
    "attention or a state": False,
    "shared layers": False,
}


@pytest.mark.parametrize("name", marked(PAGED))
def test_layers_fit_into_pages_where_all_keep_keys_and_values_of_one_size(name: str) -> None:
    assert counted(name).fits_pages is PAGED[name]


def test_a_mixture_lists_its_experts_and_what_every_token_uses() -> None:
    facts = facts_of("latents")
    experts = [matrix for matrix in facts.matrices if matrix.use == "routed"]
    assert (facts.experts, facts.experts_per_token) == (4, 2)
    assert {matrix.kind for matrix in experts} == {"expert"} and sum(matrix.count for matrix in experts) == 2 * 4
    assert facts.matrices[0].kind == "embedding" and facts.matrices[-1].kind == "head"


def test_an_encoder_has_no_cache_and_is_built_without_a_head() -> None:
    facts = facts_of("an encoder")
    assert facts.kind == "encoder" and facts.cache_layers == () and kv_bytes(facts, DYNAMIC, 9, 1, 4).total == 0
    assert not [matrix for matrix in facts.matrices if matrix.kind == "head"]


REFUSED = [
    ({"model_type": "recurrent_gemma", "num_hidden_layers": 3}, "recurrent"),
    ({"model_type": "xmod"}, "encoder"),
    ({"model_type": "t5"}, "encoder-decoder model"),
    ({"model_type": "bart", "is_encoder_decoder": True}, "encoder-decoder model"),
    ({"model_type": "llava"}, "neither"),
    ({"model_type": "evil", "auto_map": {"AutoModel": "x.Y"}}, "no model_type"),
    ({"model_type": ["llama"]}, "no model_type"),
    ({"model_type": "falcon", "hidden_size": "wide"}, "^transformers cannot build it: "),
    (
        {
            "model_type": "minimax", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
            "head_dim": 16, "num_local_experts": 2, "vocab_size": 512,
            "layer_types": ["linear_attention", "full_attention"],
        },
        "^transformers builds it, and a pass .* fails: ValueError",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("config", "said"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_cannot_be_counted_is_refused_with_a_reason(config: dict[str, Any], said: str) -> None:
    from tokendyno.backend.counter.model import Refused, count

    with pytest.raises(Refused, match=said):
        count(config)


@pytest.mark.parametrize(
    ("architecture", "libraries", "left"),
    [
        ("longcat_flash", ("torchao",), 4),  # it lists a weight, which only torchao looks for
        ("deepseek_v32", ("bitsandbytes", "quanto"), 4),  # a module
        ("gemma3n_text", ("bitsandbytes", "quanto", "torchao"), 0),  # the last one is its head, not yet tied
    ],
)
def test_matrices_that_a_library_leaves_as_they_are_are_told_apart(
    architecture: str, libraries: tuple[str, ...], left: int
) -> None:
    from tokendyno.backend.counter.model import build, list_matrices, read_config

    matrices = list_matrices(build(read_config(tiny_config(architecture)), False), set())
    assert sum(matrix.count for matrix in matrices if matrix.dense_in == libraries) == left
    dense = [matrix for matrix in matrices if matrix.dense_in]
    assert sum(matrix.count for matrix in dense) == left and {matrix.kind for matrix in dense} <= {"linear"}
    facts = replace(facts_of("latents"), matrices=tuple(matrices))
    linear = sum(matrix.count for matrix in matrices if matrix.kind == "linear")
    assert packed_matrices(facts, "torchao-int8") == linear - left * ("torchao" in libraries)


def test_what_a_class_builds_in_float32_is_float32_beside_a_checkpoint_in_bfloat16() -> None:
    from tokendyno.backend.counter.model import _float32, build, read_config

    counts = _float32(build(read_config(tiny_config("olmo_hybrid")), False))
    assert counts["bfloat16"] == counts["float16"] == counts["built"] > 0
