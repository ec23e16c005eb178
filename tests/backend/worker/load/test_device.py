"""Measurements of a load: seconds by stage and peak memory, and the start that they are a part of; and the allocator's
warm-up, skipped where planned."""

from typing import Any

import msgspec
import pytest
import torch
from transformers import modeling_utils

from tests.support.worker import plan_of
from tokendyno.backend.models import resolve
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import LoadingKind, LoadPlan, ProjectionsKind
from tokendyno.backend.worker.load.device import Observed, device_keywords, moved, observing


def plan(loading: LoadingKind, device: str = "cuda") -> LoadPlan:
    return LoadPlan(ModelSource("folder"), device=device, loading=loading)


@pytest.mark.parametrize(
    ("loading", "device", "keywords"),
    [
        ("device_map", "cuda", {"device_map": "cuda"}),
        ("no-warmup", "cuda", {"device_map": "cuda"}),
        ("plain", "cuda", {}),
        ("device_map", "cpu", {}),
    ],
)
def test_the_device_map_follows_the_plan(loading: LoadingKind, device: str, keywords: Any) -> None:
    assert device_keywords(plan(loading, device)) == keywords


@pytest.mark.parametrize(
    ("loading", "projections", "runs"),
    [("device_map", "separate", 1), ("device_map", "fused", 0), ("no-warmup", "separate", 0), ("plain", "separate", 1)],
)
def test_the_warm_up_is_replaced_only_during_the_load(
    loading: LoadingKind, projections: ProjectionsKind, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decision only: without a GPU there is no allocator."""
    seen: list[Any] = []
    monkeypatch.setattr(modeling_utils, "caching_allocator_warmup", lambda *args: seen.append(args))
    plain = modeling_utils.caching_allocator_warmup
    observed = Observed()
    with observing(msgspec.structs.replace(plan(loading), projections=projections), observed):
        modeling_utils.caching_allocator_warmup(None, {}, None)
    assert len(seen) == runs and modeling_utils.caching_allocator_warmup is plain
    assert observed.counts == {"load_warmup_bytes": 0, "load_moved_bytes": 0}
    assert set(observed.stages_s) == {"read", "warm_up"} if runs else {"read"}


def test_tensors_in_host_memory_are_counted_and_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the meta device instead of a GPU."""
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    model, observed = torch.nn.Linear(8, 4), Observed()
    assert moved(model, plan("device_map", "meta"), observed).weight.device.type == "cpu"
    assert moved(model, plan("plain", "cpu"), observed).weight.device.type == "cpu"
    assert observed.counts == {}
    observed.counts["load_moved_bytes"] = 0
    assert moved(model, plan("plain", "meta"), observed).weight.device.type == "meta"
    assert observed.counts["load_moved_bytes"] == 4 * (8 * 4 + 4)
    assert set(observed.stages_s) == {"move"}


def test_a_real_load_has_stages_and_peaks() -> None:
    from tests.support.local_worker import LocalWorker

    bench = LocalWorker(plan_of("pocket").load).model
    assert set(bench.observed.stages_s) == {"tokenizer", "read", "check"}
    assert all(took_s > 0 for took_s in bench.observed.stages_s.values())
    assert bench.observed.peak_bytes["host"] > bench.weight_bytes and set(bench.observed.peak_bytes) == {"host"}
    assert bench.counts == {"load_warmup_bytes": 0, "load_moved_bytes": 0, "drawn_tensors": 0}
    assert resolve("pocket").source.kind == "embedded"
    random = LocalWorker(plan_of("random:pocket").load).model
    assert set(random.observed.stages_s) == {"fill"}
