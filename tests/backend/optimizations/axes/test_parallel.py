"""parallel: what can be split over how many ranks, said before anything runs."""

from collections import Counter
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tests.support.machines import CPU, EIGHT, H200, facts
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.counts import RunCounts
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import resolve
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations.axes.parallel import Parallel, ranks_of
from tokendyno.backend.paths import PRESETS
from tokendyno.backend.plan import Exchanges, LoadPlan, ParallelPlan, Plan
from tokendyno.backend.predict.parallel import shard
from tokendyno.backend.predict.weights import weight_bytes
from tokendyno.backend.script.parts import Script
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.prove.profile import Trace
from tokendyno.backend.worker.witness import find, parallel

MXFP4 = str(PRESETS / "models" / "pocket-mxfp4")
MORE_CORES = replace(CPU, cores=8)
TWO_HOSTS = replace(EIGHT, gpus=EIGHT.gpus[:2], hosts=2)
THREE_HOSTS = replace(CPU, hosts=3)


def refusal(model: str, machine: Machine, **choices: str) -> tuple[str, dict[str, str]]:
    """The first reason, and its fix; "" where the arm can run."""
    blocked = check(make_config(model, choices), resolve(model), machine, Workload(prompt="Once")).blocked
    return (blocked[0].reason, blocked[0].fix) if blocked else ("", {})


@pytest.mark.parametrize(("choice", "ranks"), [("off", 1), ("tensor-2", 2), ("expert-4", 4), ("device-map-4", 1)])
def test_as_many_processes_share_a_model_as_it_has_ranks(choice: str, ranks: int) -> None:
    assert ranks_of({"parallel": choice}) == ranks and ranks_of({}) == 1


@pytest.mark.parametrize(
    ("model", "machine", "choice", "says", "fix"),
    [
        ("pocket", MORE_CORES, "tensor-4", "key/value heads cannot be split evenly. Take one of 1, 2.", "tensor-2"),
        ("pocket", MORE_CORES, "expert-8", "key/value heads cannot be split evenly. Take one of 1, 2.", "expert-2"),
        ("random:Gemma-3-1b", EIGHT, "tensor-2", "its 1 key/value head cannot be split evenly. Take one GPU.", "off"),
        ("random:gpt2", EIGHT, "tensor-2", "no parallel plan for gpt2", "off"),
        ("random:Qwen3-0.6B", EIGHT, "expert-4", "has no experts to share out.", "tensor-4"),
        ("random:Qwen3-0.6B", H200, "tensor-2", "2 ranks need 2 GPUs; this machine has 1.", "off"),
        ("random:Qwen3-0.6B", CPU, "tensor-4", "4 ranks need 4 CPU cores; this machine has 2.", "tensor-2"),
        ("random:Qwen3-0.6B", TWO_HOSTS, "tensor-8", "need 4 GPUs on each; this one has 2.", "tensor-4"),
        ("random:Qwen3-0.6B", THREE_HOSTS, "tensor-2", "2 ranks cannot be shared out evenly over 3 machines.", "off"),
        (MXFP4, CPU, "tensor-2", "dequantized expert by expert: whole experts can be shared out", "expert-2"),
        ("gpt-oss-20b", EIGHT, "tensor-8", "2,880 is 90 blocks of MXFP4, which cannot be split evenly", "tensor-2"),
    ],
)
def test_what_cannot_be_split_says_why_and_what_can(
    model: str, machine: Machine, choice: str, says: str, fix: str
) -> None:
    reason, found = refusal(model, machine, parallel=choice)
    assert says in reason and found == {"parallel": fix}
    if fix != "off":
        assert not refusal(model, machine, parallel=fix)[1].get("parallel"), "what is advised can run"


def test_the_devices_of_all_machines_count_and_each_needs_memory_for_its_own_ranks() -> None:
    two = replace(CPU, hosts=2)
    assert refusal("random:Qwen3-0.6B", CPU, parallel="tensor-4")[0]
    assert refusal("random:Qwen3-0.6B", two, parallel="tensor-4") == ("", {})
    config = make_config("pocket", {"parallel": "tensor-2"})
    alone, shared = (check(config, resolve("pocket"), machine, Workload(prompt="Once")) for machine in (CPU, two))
    assert (alone.plan.load.parallel.hosts, shared.plan.load.parallel.hosts) == (1, 2)
    assert alone.needed_bytes == 2 * shared.needed_bytes


@pytest.mark.parametrize(
    ("beside", "fix"),
    [
        ({"quantization": "torchao-int8"}, {"quantization": "none"}),
        ({"cache": "static", "compile": "reduce-overhead"}, {"compile": "off"}),
        ({"cache": "static", "compile": "default", "projections": "fused"}, {"compile": "off"}),
        ({"speculation": "prompt-lookup"}, {"speculation": "off"}),
    ],
)
def test_what_is_untried_across_ranks_is_refused_and_said_to_be_untried(
    beside: dict[str, str], fix: dict[str, str]
) -> None:
    reason, found = refusal("random:Qwen3-0.6B", EIGHT, parallel="tensor-2", **beside)
    assert ("untried" in reason or "tried only" in reason) and found == fix
    assert refusal("random:Qwen3-0.6B", EIGHT, **beside)[0] == ""


@pytest.mark.parametrize("choice", ["mxfp4", "mxfp4-dequantized"])
def test_a_model_that_has_no_mxfp4_is_refused_that_alone(choice: str) -> None:
    arm = make_config("random:Qwen3-0.6B", {"quantization": choice, "parallel": "tensor-2"})
    checked = check(arm, facts("random:Qwen3-0.6B"), EIGHT, Workload(prompt="Once"))
    assert {verdict.axis for verdict in checked.blocked} == {"quantization"}


@pytest.mark.parametrize("choice", ["expert-4", "tensor-4"])
def test_our_kernels_for_experts_are_refused_across_ranks_of_mixtures_other_than_gpt_oss(choice: str) -> None:
    reason, fix = refusal("random:Qwen3-30B-A3B", EIGHT, parallel=choice, experts="triton")
    assert "tried across ranks with gpt-oss only" in reason and fix == {"experts": "auto"}
    assert refusal("random:Qwen3-30B-A3B", EIGHT, parallel=choice) == ("", {})
    assert refusal("random:Qwen3-30B-A3B", EIGHT, experts="triton") == ("", {})
    assert refusal("random:gpt-oss-20b", EIGHT, parallel=choice, experts="triton") == ("", {})
    assert refusal("random:Qwen3-0.6B", EIGHT, parallel="tensor-4", experts="triton") == ("", {}), "no experts"


@pytest.mark.parametrize("choice", ["expert-4", "tensor-2"])
def test_ranks_compute_mxfp4_by_kernels_of_ours_each_with_its_part_of_the_weights(choice: str) -> None:
    """Beside another choice of `experts`, which leaves MXFP4 to the Hub's, they are refused."""
    model, ranks = facts("gpt-oss-20b"), int(choice[-1])
    checked = check(make_config("gpt-oss-20b", {"parallel": choice}), model, EIGHT, Workload(prompt="Once"))
    assert not checked.blocked and checked.plan.load.experts == "triton" and checked.plan.load.quantization == "none"
    assert checked.memory.weights == weight_bytes(shard(model, ranks, ranks if "expert" in choice else 1))
    assert weight_bytes(model) < ranks * checked.memory.weights < 1.01 * weight_bytes(model)
    assert refusal("gpt-oss-20b", EIGHT, parallel=choice, experts="batched_mm")[1] == {"experts": "triton"}
    fused = {"parallel": choice, "projections": "fused", "loop": "own", "cache": "static"}
    assert not refusal("random:gpt-oss-20b", EIGHT, experts="triton", **fused)[0]
    assert refusal("random:gpt-oss-20b", EIGHT, experts="batched_mm", **fused)[1] == {"projections": "separate"}


def test_the_plan_counts_what_the_prediction_splits_and_the_exchanges() -> None:
    """8 layers of q, k, v and o, 8 experts with two matrices each, and the embedding, tied to the head."""
    checked = check(make_config("pocket", {"parallel": "tensor-2"}), facts("pocket"), CPU, Workload(prompt="Once"))
    assert checked.plan.load.parallel == ParallelPlan("tensor", 2, 8 * (4 + 8 * 2) + 1, Exchanges(2 * 8 + 1, 1))
    assert not checked.blocked and "gloo" in next(v.reason for v in checked.verdicts if v.axis == "parallel")


@pytest.mark.parametrize(
    ("seen", "passes", "missing"),
    [
        ({"all_reduce": 36, "all_gather": 2}, 2, 0),
        ({"all_reduce": 34, "all_gather": 2}, 2, 2),  # one layer's feed-forward is not added up, in both passes
        ({"all_reduce": 54, "all_gather": 3}, 3, 0),  # a step that was launched ahead
        ({"all_reduce": 51, "all_gather": 3}, 3, 3),  # and hides no layer
        ({}, 2, 38),
    ],
)
def test_each_kind_of_exchange_is_counted(
    seen: dict[str, int], passes: int, missing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = check(make_config("pocket", {"parallel": "tensor-2"}), facts("pocket"), CPU, Workload(prompt="Once")).plan
    plan = msgspec.structs.replace(
        plan, load=msgspec.structs.replace(plan.load, parallel=ParallelPlan("tensor", 2, 10, Exchanges(18, 1)))
    )
    monkeypatch.setattr(parallel, "_split_matrices", lambda model: parallel._SplitMatrices(10, 1, 2))
    trace = Trace(Counter(), Counter(), Counter(), 2, collectives=Counter(seen))
    finding = find(
        "parallel", Observation(None, None, plan, lambda: trace, RunCounts(), gather=lambda mine: [mine, mine])
    )
    assert (finding.effective, finding.expected) == ("tensor-2", 2 * 10 + passes * 19)
    assert finding.expected is not None and finding.reached == finding.expected - missing


def test_each_rank_is_predicted_alone_and_a_cpu_has_to_hold_all_of_them() -> None:
    alone, shared = (
        check(make_config("pocket", {"parallel": choice}), facts("pocket"), CPU, Workload(prompt="Once"))
        for choice in ("off", "tensor-2")
    )
    assert shared.memory.weights == weight_bytes(shard(facts("pocket"), 2)) < 0.51 * alone.memory.weights
    assert shared.needed_bytes == 2 * shared.memory.total and alone.needed_bytes == alone.memory.total
    gpu = check(
        make_config("random:Qwen3-0.6B", {"parallel": "tensor-2"}), facts("random:Qwen3-0.6B"), EIGHT, Workload("Once")
    )
    assert gpu.needed_bytes == gpu.memory.total
    tight = replace(CPU, free_bytes=round(1.5 * shared.memory.total))
    refused = check(make_config("pocket", {"parallel": "tensor-2"}), facts("pocket"), tight, Workload(prompt="Once"))
    assert "are free" in refused.blocked[-1].reason


def test_a_device_map_says_what_it_costs_and_plans_layers_on_the_gpus_of_one_process() -> None:
    checked = check(
        make_config("random:Llama-3-8B", {"parallel": "device-map-2"}),
        facts("random:Llama-3-8B"),
        EIGHT,
        Workload(prompt="Once"),
    )
    said = next(v for v in checked.verdicts if v.axis == "parallel")
    assert not checked.blocked and said.level == "note" and "one after the other" in said.reason
    assert checked.plan.load.parallel == ParallelPlan("device-map", devices=2, layers=32)
    assert checked.needed_bytes == checked.memory.fullest >= checked.memory.total


@pytest.mark.parametrize(("choice", "source"), [("device-map-2", "accelerate.py"), ("tensor-2", "tensor_parallel.py")])
def test_a_refusal_names_the_code_that_would_share_the_model(choice: str, source: str) -> None:
    config = make_config("pocket", {"parallel": choice})
    assert source in check(config, facts("pocket"), H200, Workload(prompt="Once")).blocked[0].source


@pytest.mark.parametrize(
    ("model", "machine", "beside", "says"),
    [
        ("pocket", CPU, {}, "this machine has none"),
        ("random:Llama-3-8B", H200, {}, "needs 2; this machine has 1"),
        ("random:Llama-3-8B", EIGHT, {"quantization": "torchao-int8"}, "untried"),
        ("random:Llama-3-8B", EIGHT, {"loop": "own", "cache": "static"}, "keeps its buffers on one GPU"),
        ("random:Llama-3-8B", EIGHT, {"projections": "fused"}, "hooks"),
        ("gpt-oss-20b", EIGHT, {}, "packed checkpoint"),
    ],
)
def test_a_device_map_is_refused_with_the_reason(
    model: str, machine: Machine, beside: dict[str, str], says: str
) -> None:
    assert says in refusal(model, machine, parallel="device-map-2", **beside)[0]


@pytest.mark.parametrize(
    ("load", "made", "biases"),
    [
        ({}, False, True),
        ({"projections": "fused"}, True, True),
        ({"kernels": "local"}, True, True),
        ({"parallel": ParallelPlan("expert", 2)}, False, False),
    ],
)
def test_a_script_puts_plain_parts_where_something_is_replaced(load: dict[str, Any], made: bool, biases: bool) -> None:
    script = Script()
    Parallel().write(script, Plan(LoadPlan(ModelSource("random"), **{"parallel": ParallelPlan("tensor", 2)} | load)))
    assert ("make_local(model)" in script.patch) is made
    assert ("add_biases_once(model, rank)" in script.patch) is biases


@pytest.mark.parametrize(("hosts", "whose"), [(1, "this CPU's cores"), (2, "the machines' cores")])
def test_without_a_gpu_a_note_says_whose_cores_are_shared(hosts: int, whose: str) -> None:
    config, model = make_config("random:Qwen3-0.6B", {"parallel": "tensor-2"}), resolve("random:Qwen3-0.6B")
    checked = check(config, model, replace(MORE_CORES, hosts=hosts), Workload(prompt="a"))
    assert any(f"processes share {whose} and exchange through gloo" in note.reason for note in checked.verdicts)


@pytest.mark.parametrize(("device", "placed"), [("cuda", True), ("cpu", False)])
@pytest.mark.parametrize(
    ("config", "model_type"), [('{"model_type": "llama"}', "'llama'"), ("", "AutoConfig.from_pretrained(MODEL)")]
)
def test_a_script_of_ranks_takes_its_own_gpu_and_only_the_first_prints(
    device: Any, placed: bool, config: str, model_type: str
) -> None:
    source = ModelSource("random" if config else "hub", config_json=config)
    script = Script(load={"device_map": "DEVICE"}, patch=["fuse(model)"])
    parallel = ParallelPlan("expert", 4)
    Parallel().write(script, Plan(LoadPlan(source, device=device, parallel=parallel, projections="fused")))
    assert any("torch.cuda.set_device" in line for line in script.prepare) is placed
    assert script.prepare[-2:] == ["if rank:", '    sys.stdout = open(os.devnull, "w")']
    assert script.load["distributed_config"].startswith(f"distributed_config({model_type}")
    assert "device_map" not in script.load and script.patch == ["make_local(model)", "fuse(model)"]
