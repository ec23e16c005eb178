"""Proofs of a device map, on tensors of host memory and the meta device, and of parts of matrices."""

from collections import Counter
from typing import Any

import msgspec
import pytest
import torch

from backend.arms.check import check
from backend.arms.parse import make_config
from backend.config import Workload
from backend.optimizations import Observation
from backend.optimizations.axes.parallel import AXIS
from backend.optimizations.axes.parallel.proof import _held as held_parts
from backend.optimizations.proof import Trace
from backend.plan import ParallelPlan
from backend.worker.patch.shards import SummedLinear
from tests.support.machines import CPU, facts

LAYERS, PASSES = 4, 3


def spread(own_map: dict[str, Any] | None = None) -> Any:
    """A tiny Llama whose later half and head are on the meta device, with the map that says so."""
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "num_key_value_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(num_hidden_layers=LAYERS, vocab_size=32, **sizes))
    places = {"model.embed_tokens": "cpu"} | {f"model.layers.{i}": "cpu" if i < 2 else "meta" for i in range(LAYERS)}
    places |= {"model.norm": "meta", "lm_head": "meta"}
    for path, place in places.items():
        model.get_submodule(path).to(place)
    model.hf_device_map = own_map or places
    return model


def found(model: Any, copies: int = PASSES) -> Any:
    plan = check(make_config("pocket", {}), facts("pocket"), CPU, Workload(prompt="Once")).plan
    device_map = ParallelPlan("device-map", devices=2, layers=LAYERS)
    plan = msgspec.structs.replace(plan, load=msgspec.structs.replace(plan.load, parallel=device_map))
    trace = Trace(Counter(), Counter({"Memcpy PtoP (Device -> Device)": copies}), Counter(), PASSES)
    return AXIS.find(Observation(model, None, plan, lambda: trace))


def test_all_layers_lie_where_the_map_says_and_something_goes_from_one_device_to_the_other() -> None:
    seen = found(spread(), 40)
    assert seen.effective == "device-map-2" and seen.reached == seen.expected == LAYERS + 3 + PASSES
    assert "4 of 4 layers" in seen.proof and "2 on cpu, 2 on meta" in seen.proof and "40 copies" in seen.proof


@pytest.mark.parametrize("moved", ["model.layers.2", "model.layers.1.mlp", "lm_head"])
def test_what_lies_elsewhere_than_the_map_says_is_missed(moved: str) -> None:
    model = spread()
    module = model.get_submodule(moved)
    module.to_empty(device="cpu" if next(module.parameters()).is_meta else "meta")
    seen = found(model)
    assert seen.effective == "device-map-2" and seen.reached == seen.expected - 1


def test_a_plain_tensor_that_is_smaller_than_the_models_is_a_part_of_a_matrix() -> None:
    """As a rank holds it after which the sums are exchanged by our kernel: no distributed tensor."""
    model = spread()
    assert held_parts(model).matrices == 0
    down = model.model.layers[0].mlp.down_proj
    down.__class__, down.weight = SummedLinear, torch.nn.Parameter(down.weight[:, :4].clone())
    found = held_parts(model)
    assert (found.matrices, found.part_bytes, found.whole_bytes) == (1, 16 * 4 * 4, 16 * 16 * 4)


def test_a_pass_without_a_copy_is_missed_and_one_device_is_no_device_map() -> None:
    seen = found(spread(), PASSES - 1)
    assert seen.reached == seen.expected - 1
    alone = spread()
    alone.to_empty(device="cpu")
    alone.hf_device_map = {"": "cpu"}
    assert found(alone).effective == "off"
