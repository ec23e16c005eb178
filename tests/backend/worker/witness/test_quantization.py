"""What is told of weights: by their classes and inner tensors."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

from tests.support.machines import facts
from tests.support.quantization import NF4, judge, llama
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.witness import find
from tokendyno.backend.worker.witness.quantization import _dense_experts, kind_of


@pytest.mark.filterwarnings("ignore")
def test_what_the_checkpoint_had_packed_is_nones(tmp_path: Path) -> None:
    """Beside the same weights packed while they are loaded."""
    model, again = llama()
    packed = type(model).from_pretrained(None, quantization_config=BitsAndBytesConfig(**NF4), **again)
    packed.save_pretrained(tmp_path)
    plan = judge(replace(facts("random:Qwen3-0.6B"), random=False, quantization="bitsandbytes")).plan
    kept = find("quantization", Observation(AutoModelForCausalLM.from_pretrained(tmp_path), None, plan))
    made = find("quantization", Observation(packed, None, plan))
    assert (kept.effective, made.effective) == ("none", "bnb-nf4")
    assert "as the checkpoint holds them" in kept.proof and "matrices in bnb-nf4" in kept.proof


def mixture(weight: torch.Tensor, *names: str) -> Any:
    """A module whose parameters are `down_proj` and others of these names."""
    module = torch.nn.Module()
    module.register_parameter("down_proj", torch.nn.Parameter(weight))
    for name in names:
        module.register_parameter(name, torch.nn.Parameter(torch.zeros(1)))
    return module


def test_experts_are_told_by_their_dimensions_and_their_bias() -> None:
    stacked, flat = torch.zeros(2, 64, 3), torch.zeros(2, 64)
    model = torch.nn.ModuleList(
        [
            mixture(stacked, "gate_up_proj_bias"),
            mixture(stacked),
            mixture(flat, "gate_up_proj_bias"),
            torch.nn.Linear(2, 2),
        ]
    )
    assert [weight.shape for weight in _dense_experts(model)] == [stacked.shape]


def fake(name: str, module: str = __name__, **fields: Any) -> Any:
    return type(name, (), {"__module__": module, **fields})()


@pytest.mark.parametrize(
    ("library", "dtype", "kind"),
    [
        ("torchao.quantization.linear", torch.int8, "torchao-int8"),
        ("torchao.float8", torch.float8_e4m3fn, "torchao-fp8"),
        ("torchao.prototype", torch.int32, "torchao-int4"),
        ("torchao.prototype", torch.uint8, "torchao-int4"),
        ("optimum.quanto.tensor", torch.int8, "quanto-int8"),
        ("optimum.quanto.tensor", torch.int16, "quanto-int4"),
        ("else.where", torch.int8, "unknown-int8"),
        ("torchao.new", torch.int64, "torchao-torch.int64"),
    ],
)
def test_a_packed_tensor_is_known_by_its_library_and_its_largest_part(library: str, dtype: Any, kind: str) -> None:
    parts = {"scale": torch.zeros(2), "data": torch.zeros(64, dtype=dtype), "zero": torch.zeros(2)}
    packed = fake("Packed", library, **parts, __tensor_flatten__=lambda self: (list(parts), None))
    assert kind_of(packed) == kind


@pytest.mark.filterwarnings("ignore")
def test_each_packed_matrix_is_counted() -> None:
    model, again = llama()
    packed = type(model).from_pretrained(None, quantization_config=BitsAndBytesConfig(**NF4), **again)
    with torch.inference_mode():
        packed(torch.tensor([[1, 2, 3]]))  # on some CPUs weights are repacked then
    plan = Plan(LoadPlan(ModelSource("random"), quantization="bnb-nf4", packed=7))
    intact = find("quantization", Observation(packed, None, plan))
    assert (intact.effective, intact.reached, intact.expected) == ("bnb-nf4", 7, 7)
    assert intact.proof.startswith("7 of 7 matrices in bnb-nf4: ")


@pytest.mark.parametrize(("planned", "effective"), [("mxfp4", "mxfp4-dequantized"), ("none", "none")])
def test_dense_experts_were_dequantized_only_where_the_plan_has_mxfp4(planned: Any, effective: str) -> None:
    model = torch.nn.ModuleList([mixture(torch.rand(1, 64, 1), "gate_up_proj_bias")])
    plan = Plan(LoadPlan(ModelSource("random"), quantization=planned))
    assert find("quantization", Observation(model, None, plan)).effective == effective


@pytest.mark.parametrize(("dense", "counted"), [(0, (4, 4)), (1, (4, 5))])
def test_of_experts_in_mxfp4_those_that_are_dense_are_missed(dense: int, counted: tuple[int, int]) -> None:
    def packed() -> Any:
        module = torch.nn.Module()
        for name in ("gate_up_proj", "down_proj"):
            for part, width in (("blocks", 16), ("scales", 1)):
                codes = torch.nn.Parameter(torch.zeros(2, 4, width, dtype=torch.uint8), requires_grad=False)
                module.register_parameter(f"{name}_{part}", codes)
        return module

    beside = [mixture(torch.rand(2, 64, 3), "gate_up_proj_bias") for _ in range(dense)]
    model = torch.nn.ModuleList([packed(), packed(), torch.nn.Linear(4, 4), *beside])
    model.dtype = torch.float32
    plan = Plan(LoadPlan(ModelSource("random"), quantization="mxfp4"))
    finding = find("quantization", Observation(model, None, plan))
    assert (finding.effective, finding.reached, finding.expected) == ("mxfp4", *counted)
    assert f"4 of {counted[1]} matrices in mxfp4: {2 * 2 * 2 * 4 * 17:,} bytes with scales" in finding.proof


def test_without_a_plan_for_it_packed_weights_are_named_and_not_counted() -> None:
    model, again = llama()
    packed = type(model).from_pretrained(None, quantization_config=BitsAndBytesConfig(**NF4), **again)
    finding = find("quantization", Observation(packed, None, Plan(LoadPlan(ModelSource("random")))))
    assert (finding.effective, finding.reached, finding.expected) == ("bnb-nf4", None, None)
    assert finding.proof.startswith("7 matrices in bnb-nf4: ")
