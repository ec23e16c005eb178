"""gpt-oss in MXFP4, read as it lies in the checkpoint, against what transformers makes of the same file."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM, Mxfp4Config
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

from tests.support.quantization import PACKED
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import Observation
from tokendyno.backend.optimizations.axes.quantization.axis import AXIS
from tokendyno.backend.optimizations.tensor_bytes import parameter_count, total_bytes, weight_tensors
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.worker.load.quantization import read_packed
from tokendyno.backend.worker.patch.experts import TRITON, PackedExperts
from tokendyno.backend.worker.prove.graph_calls import matrices


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    read_packed(False)


@pytest.fixture(scope="module")
def packed() -> Any:
    read_packed(True)
    model = AutoModelForCausalLM.from_pretrained(PACKED)
    read_packed(False)  # or `dense` would be read like that, if it comes later
    return model


@pytest.fixture(scope="module")
def dense() -> Any:
    return AutoModelForCausalLM.from_pretrained(PACKED, quantization_config=Mxfp4Config(dequantize=True))


def test_every_block_and_scale_is_the_files(packed: Any) -> None:
    own = dict(packed.named_parameters())
    with safe_open(f"{PACKED}/model.safetensors", "pt") as file:
        there = set(file.keys())
        assert {name for name in own if "experts" in name} == {name for name in there if "experts" in name}
        for name in own:
            assert torch.equal(own[name], file.get_tensor(name).to(own[name].dtype)), name


def test_they_are_the_weights_that_transformers_dequantizes(packed: Any, dense: Any) -> None:
    for one, other in zip(packed.model.layers, dense.model.layers, strict=True):
        mine, theirs = one.mlp.experts, other.mlp.experts
        assert isinstance(mine, PackedExperts)
        assert (mine.limit, mine.alpha) == (theirs.limit, theirs.alpha)
        for name in ("gate_up_proj", "down_proj"):
            blocks, scales = getattr(mine, f"{name}_blocks"), getattr(mine, f"{name}_scales")
            assert torch.equal(convert_moe_packed_tensors(blocks, scales), getattr(theirs, name))


def multiplied(experts: Any, hidden: Any, indices: Any, shares: Any) -> Any:
    """Both products of an expert, by transformers' reading of the blocks: the kernels need a GPU."""
    for name in ("gate_up_proj", "down_proj"):
        read = convert_moe_packed_tensors(getattr(experts, f"{name}_blocks"), getattr(experts, f"{name}_scales"))
        weight = read[indices[0, 0]].to(hidden.dtype)
        hidden = hidden[:, : weight.shape[0]] @ weight
    return hidden


def test_they_count_as_what_they_are(packed: Any, dense: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ALL_EXPERTS_FUNCTIONS._global_mapping, TRITON, multiplied)
    layers = packed.config.num_hidden_layers
    finding = AXIS.find(Observation(packed, None, Plan(LoadPlan(ModelSource("random")))))
    assert (finding.effective, finding.reached, finding.expected) == ("mxfp4", 2 * layers, 2 * layers)
    assert parameter_count(packed) == parameter_count(dense)
    assert total_bytes(weight_tensors(packed)) == sum(one.nbytes for one in (*packed.parameters(), *packed.buffers()))
    assert len({one.data_ptr() for one in matrices(packed)}) == len(matrices(packed))
