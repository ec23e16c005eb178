"""The ways of loading: told apart by the bytes that the worker counted, and said to be the same where they are."""

import msgspec
import pytest
from torch.nn import Module

from tests.support.machines import CPU, H200, facts
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.counts import counts_of
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models.source import ModelSource, SourceKind
from tokendyno.backend.optimizations.axes.loading import Loading
from tokendyno.backend.plan import LoadingKind, LoadPlan, Plan
from tokendyno.backend.script.parts import Script
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.witness import find

WAYS: tuple[LoadingKind, ...] = ("device_map", "no-warmup", "plain")


def plan(loading: LoadingKind = "device_map", device: str = "cuda", kind: SourceKind = "folder") -> Plan:
    return Plan(LoadPlan(ModelSource(kind), device=device, loading=loading))


@pytest.mark.parametrize(
    ("model", "machine", "projections", "loading", "reserves", "said"),
    [
        ("pocket", H200, "fused", "device_map", False, True),
        ("random:Qwen3-0.6B", H200, "fused", "device_map", False, False),
        ("pocket", H200, "fused", "plain", False, False),
        ("pocket", H200, "separate", "device_map", True, False),
        ("pocket", CPU, "fused", "device_map", False, False),
    ],
)
def test_matrices_that_will_be_fused_are_not_put_into_one_block(
    model: str, machine: Machine, projections: str, loading: str, reserves: bool, said: bool
) -> None:
    """On two H200s the block kept 4.5 GB of a Llama-3-8B rank's 8.0 that no tensor used (lab/measurements.md)."""
    config = make_config(model, {"projections": projections, "loading": loading})
    checked = check(config, facts(model), machine, Workload("Once"))
    assert checked.plan.load.reserves is reserves
    assert any(verdict.axis == "loading" and "piecemeal" in verdict.reason for verdict in checked.verdicts) is said


def test_of_fused_matrices_the_proof_wants_no_block() -> None:
    fused = msgspec.structs.replace(plan(), load=msgspec.structs.replace(plan().load, projections="fused"))
    finding = find(
        "loading", Observation(Module(), None, fused, counts=counts_of({"load_warmup_bytes": 0, "load_moved_bytes": 0}))
    )
    assert finding.effective == "device_map" and "once matrices are fused" in finding.proof
    script = Script(load={"device_map": "DEVICE"})
    Loading().write(script, fused)
    assert any("caching_allocator_warmup" in line for line in script.prepare)


@pytest.mark.parametrize("planned", WAYS)
@pytest.mark.parametrize(
    ("warmed", "moved", "effective"), [(9e6, 0, "device_map"), (0, 0, "no-warmup"), (0, 9e6, "plain")]
)
def test_it_is_known_by_the_bytes_and_not_by_the_plan(
    warmed: float, moved: float, effective: str, planned: LoadingKind
) -> None:
    counts = counts_of({"load_warmup_bytes": warmed, "load_moved_bytes": moved})
    finding = find("loading", Observation(Module(), None, plan(planned), counts=counts))
    assert finding.effective == effective
    assert f"{int(warmed):,} bytes" in finding.proof and f"{int(moved):,} bytes" in finding.proof


@pytest.mark.parametrize("way", WAYS)
def test_what_makes_no_difference_is_called_as_planned(way: LoadingKind) -> None:
    for same in (plan(way, "cpu"), plan(way, "cuda", "random")):
        finding = find(
            "loading",
            Observation(Module(), None, same, counts=counts_of({"load_warmup_bytes": 0, "load_moved_bytes": 0})),
        )
        assert finding.effective == way and "all choices are the same" in finding.proof
