"""Where MXFP4 weights run as they are, and where they are dequantized, against transformers."""

from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM, Mxfp4Config

from tests.support.machines import CPU, H200
from tests.support.quantization import PACKED, gpu, judge, of, packed_kinds, without
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import resolve
from tokendyno.backend.optimizations.mxfp4 import KERNELS as MXFP4_KERNELS

# --- MXFP4 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["none", "mxfp4"])
@pytest.mark.parametrize(
    ("machine", "choices", "says"),
    [
        (H200, {}, ""),
        (gpu(7, 5), {}, ""),
        (replace(H200, hub_offline=True, hub_kernels=(MXFP4_KERNELS,)), {}, ""),
        (CPU, {}, "NVIDIA GPUs only"),
        (gpu(7, 0), {}, "capability 7.5"),
        (without("triton"), {}, "triton 3.4"),
        (replace(H200, packages=tuple((dict(H200.packages) | {"triton": "3.3.1"}).items())), {}, "triton 3.4"),
        (replace(H200, packages=tuple((dict(H200.packages) | {"triton": "3.4"}).items())), {}, ""),
        (without("kernels"), {}, "package kernels"),
        (replace(H200, hub_offline=True), {"experts": "eager"}, "LOCAL_KERNELS"),
        (replace(gpu(7, 5), hub_offline=True), {}, "LOCAL_KERNELS"),
    ],
)
def test_a_packed_checkpoint_stays_packed_where_its_kernels_run(
    choice: str, machine: Machine, choices: dict[str, str], says: str
) -> None:
    checked = judge(PACKED, machine, quantization=choice, **choices)
    found = of(checked, "fallback")
    assert [says in verdict.reason for verdict in found] == ([True] if says else [])
    assert checked.requested["quantization"] == choice
    assert checked.planned["quantization"] == ("mxfp4-dequantized" if says else "mxfp4")
    assert checked.plan.load.quantization == ("mxfp4-dequantized" if says else "none")
    assert all(verdict.fix == {"quantization": "mxfp4-dequantized"} for verdict in found)
    settled = judge(PACKED, machine, quantization="mxfp4-dequantized", **choices)
    assert (of(settled) == [] and settled.memory.weights == checked.memory.weights) or not says


@pytest.mark.parametrize("choice", ["none", "mxfp4"])
def test_our_kernels_stand_in_where_the_hubs_cannot_be_had(choice: str) -> None:
    offline = replace(H200, hub_offline=True)
    checked = judge(PACKED, offline, quantization=choice)
    assert (checked.planned["quantization"], checked.planned["experts"]) == ("mxfp4", "triton")
    assert checked.plan.load.experts == "triton"
    (note,) = of(checked)
    assert note.level == "note" and "experts=triton" in note.reason
    asked = judge(PACKED, offline, quantization=choice, experts="triton")
    assert of(asked) == [] and asked.plan == checked.plan
    assert judge(PACKED, H200, quantization=choice).plan.load.experts is None, "the Hub's come first where they can"
    assert judge(PACKED, H200, quantization=choice, experts="triton").plan == checked.plan


def test_transformers_unpacks_mxfp4_on_a_cpu_and_takes_no_dense_model_for_it() -> None:
    if torch.cuda.is_available():
        pytest.skip("this asks a CPU")
    model = AutoModelForCausalLM.from_pretrained(PACKED)
    assert packed_kinds(model) == []
    assert model.model.layers[0].mlp.experts.down_proj.dtype is torch.bfloat16
    with pytest.raises(ValueError, match="MXFP4"):
        AutoModelForCausalLM.from_pretrained(resolve("pocket").source.path, quantization_config=Mxfp4Config())


def test_unpacked_experts_are_bfloat16_whatever_the_dtype() -> None:
    """What the worker mends after loading."""
    model = AutoModelForCausalLM.from_pretrained(
        PACKED, dtype=torch.float32, quantization_config=Mxfp4Config(dequantize=True)
    )
    dtypes = {weight.dtype for name, weight in model.named_parameters() if ".experts." in name and "bias" not in name}
    assert dtypes == {torch.bfloat16}
    assert model.lm_head.weight.dtype is torch.float32
