"""Proofs of a device map, on tensors of host memory and the meta device, and of parts of matrices."""

from collections import Counter
from typing import Any

import msgspec
import pytest
import torch

from tests.support.machines import CPU, facts
from tests.support.tiny_models import build
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.counts import RunCounts, StepTime
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import Exchanges, LoadPlan, ParallelPlan, Plan
from tokendyno.backend.worker.patch.projections import fuse
from tokendyno.backend.worker.patch.shards import SummedLinear
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.prove.profile import Trace
from tokendyno.backend.worker.witness import find, parallel
from tokendyno.backend.worker.witness.parallel import _split_matrices as held_parts

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


def witnessed(model: Any, copies: int = PASSES) -> Any:
    plan = check(make_config("pocket", {}), facts("pocket"), CPU, Workload(prompt="Once")).plan
    device_map = ParallelPlan("device-map", devices=2, layers=LAYERS)
    plan = msgspec.structs.replace(plan, load=msgspec.structs.replace(plan.load, parallel=device_map))
    trace = Trace(Counter(), Counter({"Memcpy PtoP (Device -> Device)": copies}), Counter(), PASSES)
    return find("parallel", Observation(model, None, plan, lambda: trace))


def test_all_layers_lie_where_the_map_says_and_something_goes_from_one_device_to_the_other() -> None:
    finding = witnessed(spread(), 40)
    assert finding.effective == "device-map-2" and finding.reached == finding.expected == LAYERS + 3 + PASSES
    assert "4 of 4 layers" in finding.proof and "2 on cpu, 2 on meta" in finding.proof and "40 copies" in finding.proof


def test_a_plain_tensor_that_is_smaller_than_the_models_is_a_part_of_a_matrix() -> None:
    """As a rank holds it after which the sums are exchanged by our kernel: no distributed tensor."""
    model = spread()
    assert held_parts(model).matrices == 0
    down = model.model.layers[0].mlp.down_proj
    down.__class__, down.weight = SummedLinear, torch.nn.Parameter(down.weight[:, :4].clone())
    finding = held_parts(model)
    assert (finding.matrices, finding.part_bytes, finding.whole_bytes) == (1, 16 * 4 * 4, 16 * 16 * 4)


def test_a_pass_without_a_copy_is_missed_and_one_device_is_no_device_map() -> None:
    finding = witnessed(spread(), PASSES - 1)
    assert finding.reached == finding.expected - 1
    alone = spread()
    alone.to_empty(device="cpu")
    alone.hf_device_map = {"": "cpu"}
    assert witnessed(alone).effective == "off"


def of_two_ranks(monkeypatch: pytest.MonkeyPatch, trace: Trace, ranks: int = 2, gathered: int = 2) -> Any:
    """The finding of an expert-parallel plan, where each process holds parts of 10 matrices."""
    monkeypatch.setattr(parallel, "_split_matrices", lambda model: parallel._SplitMatrices(10, 1, 2))
    load = LoadPlan(ModelSource("random"), parallel=ParallelPlan("expert", ranks, 10, Exchanges(18, 1)))
    return find(
        "parallel", Observation(None, None, Plan(load), lambda: trace, RunCounts(), lambda mine: [mine] * gathered)
    )


def exchanged(all_reduce: int = 18, steps: int = 1, **kwargs: Any) -> Trace:
    return Trace(
        Counter(),
        kwargs.pop("kernels", Counter()),
        Counter(),
        steps,
        collectives=Counter(all_reduce=all_reduce, all_gather=1),
        **kwargs,
    )


@pytest.mark.parametrize(
    ("kernels", "said"),
    [
        ({}, "passes of a profile"),
        ({"tokendyno_all_exchange": 12, "gemm": 9}, ", 12 of them by our kernel from GPU to GPU, the others by NCCL"),
        ({"ncclDevKernel_AllReduce": 18}, ", all of them by NCCL"),
    ],
)
def test_who_made_the_exchanges_is_told_where_kernels_can_be_seen(
    kernels: dict[str, int], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = of_two_ranks(monkeypatch, exchanged(kernels=Counter(kernels))).proof
    assert said in proof and ("NCCL" in proof) is bool(kernels)


@pytest.mark.parametrize(
    ("more", "share"),
    [
        ({"step": StepTime(1, 0.01, True, {"collectives": 0.002, "products": 0.008})}, ", 20% of its time"),
        ({"step": StepTime(1, 0.01, True, {"products": 0.01})}, ", 0% of its time"),
        ({"step": StepTime(1, 0.0, True, {"collectives": 0.0})}, " of a profile"),
        ({}, " of a profile"),
    ],
    ids=["of a step", "a step without", "an empty step", "no step"],
)
def test_the_time_of_exchanges_is_a_share_of_the_step(
    more: dict[str, Any], share: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert of_two_ranks(monkeypatch, exchanged(**more)).proof.endswith(share)


def test_a_fused_part_counts_as_the_matrices_that_it_replaces_and_experts_one_by_one() -> None:
    """Of q, k and v the first keeps the whole, the others its slices."""
    model = build("llama")
    assert fuse(model) == 8
    attention = model.model.layers[0].self_attn
    whole = attention.q_proj.whole
    whole.__class__, whole.weight = SummedLinear, torch.nn.Parameter(whole.weight[:, :8].clone())
    held = held_parts(model)
    assert (held.matrices, held.part_bytes, held.whole_bytes) == (3, 64 * 8 * 4, 64 * 32 * 4)
    mixture = build("gpt_oss")
    experts, head = mixture.model.layers[0].mlp.experts, mixture.lm_head
    experts.down_proj = torch.nn.Parameter(experts.down_proj[:2].clone())
    head.__class__, head.weight = SummedLinear, torch.nn.Parameter(head.weight[:, :8].clone())
    assert held_parts(mixture).matrices == 2 + 1
