"""The ways of loading: told apart by the bytes that the worker counted, and said to be the same where they are."""

import pytest

from backend.counts import RunCounts
from backend.models.source import ModelSource, SourceKind
from backend.optimizations import Observation, subject_of
from backend.optimizations.axes.loading import AXIS
from backend.plan import LoadingKind, LoadPlan, Plan
from backend.script.parts import Script
from tests.support.machines import CPU, H200, facts

WAYS: tuple[LoadingKind, ...] = ("device_map", "no-warmup", "plain")


def plan(loading: LoadingKind = "device_map", device: str = "cuda", kind: SourceKind = "folder") -> Plan:
    return Plan(LoadPlan(ModelSource(kind), device=device, loading=loading))


@pytest.mark.parametrize(
    ("model", "machine", "choices", "levels"),
    [
        ("pocket", H200, {}, []),
        ("pocket", CPU, {}, ["note"]),
        ("random:Qwen3-0.6B", H200, {}, ["note"]),
        ("random:Qwen3-0.6B", CPU, {}, ["note"]),
        ("pocket", H200, {"quantization": "bnb-nf4"}, ["blocked"]),
        ("pocket", H200, {"quantization": "torchao-int8"}, []),
        ("pocket", CPU, {"quantization": "bnb-nf4"}, ["note"]),
    ],
)
def test_where_it_changes_nothing_that_is_said(
    model: str, machine: object, choices: dict[str, str], levels: list[str]
) -> None:
    found = AXIS.verdicts("plain", subject_of(facts(model), machine, choices))  # type: ignore[arg-type]
    assert [verdict.level for verdict in found] == levels


def test_bitsandbytes_places_weights_unasked() -> None:
    """So that "plain" would be no such thing; the others leave the choice as it is."""
    from transformers import BitsAndBytesConfig, TorchAoConfig
    from transformers.quantizers import AutoHfQuantizer

    for packed in (BitsAndBytesConfig(load_in_4bit=True), BitsAndBytesConfig(load_in_8bit=True)):
        assert AutoHfQuantizer.from_config(packed, pre_quantized=False).update_device_map(None)
    from torchao.quantization import Int8WeightOnlyConfig

    dense = AutoHfQuantizer.from_config(TorchAoConfig(Int8WeightOnlyConfig()), pre_quantized=False)
    assert dense.update_device_map(None) is None


@pytest.mark.parametrize("planned", WAYS)
@pytest.mark.parametrize(
    ("warmed", "moved", "effective"), [(9e6, 0, "device_map"), (0, 0, "no-warmup"), (0, 9e6, "plain")]
)
def test_it_is_known_by_the_bytes_and_not_by_the_plan(
    warmed: float, moved: float, effective: str, planned: LoadingKind
) -> None:
    counts = RunCounts(load_warmup_bytes=warmed, load_moved_bytes=moved)
    finding = AXIS.find(Observation(None, None, plan(planned), counts=counts))
    assert finding.effective == effective
    assert f"{int(warmed):,} bytes" in finding.proof and f"{int(moved):,} bytes" in finding.proof


@pytest.mark.parametrize("way", WAYS)
def test_what_makes_no_difference_is_called_as_planned(way: LoadingKind) -> None:
    for same in (plan(way, "cpu"), plan(way, "cuda", "random")):
        finding = AXIS.find(Observation(None, None, same, counts=RunCounts(load_warmup_bytes=0, load_moved_bytes=0)))
        assert finding.effective == way and "all choices are the same" in finding.proof


@pytest.mark.parametrize(
    ("way", "device", "line"),
    [
        ("device_map", "cuda", ""),
        ("no-warmup", "cuda", "modeling_utils.caching_allocator_warmup = lambda *args: None"),
        ("plain", "cuda", "model.to(DEVICE)"),
        ("plain", "cpu", ""),
    ],
)
def test_the_script_loads_the_same_way(way: LoadingKind, device: str, line: str) -> None:
    script = Script(load={"device_map": "DEVICE"})
    AXIS.write(script, plan(way, device))
    assert [*script.prepare, *script.patch] == ([line] if line else [])
    assert ("device_map" in script.load) is (line != "model.to(DEVICE)")
