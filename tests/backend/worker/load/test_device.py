"""Measurements of a load: seconds by stage and peak memory, and the start that they are a part of; and the allocator's
warm-up, skipped where planned."""

from typing import Any

import pytest
import torch

from tests.support.worker import plan_of
from tokendyno.backend.models import resolve
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import LoadingKind, LoadPlan, ParallelPlan
from tokendyno.backend.worker.channel import Channel
from tokendyno.backend.worker.load.device import Observed, device_keywords
from tokendyno.backend.worker.load.loader import load_progress


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


def test_the_peak_of_layers_on_several_gpus_is_that_of_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    reset = list[int | None]()
    for name, read in {
        "reset_peak_memory_stats": reset.append,
        "memory_allocated": lambda index: 0,
        "max_memory_reserved": {None: 7, 0: 3, 1: 40}.get,
    }.items():
        monkeypatch.setattr(torch.cuda, name, read)
    for parallel, indices, expected in (
        (ParallelPlan(), [None], 7),  # the current one, which for a rank is its own
        (ParallelPlan("device-map", devices=2), [0, 1], 43),
    ):
        reset.clear()
        observed = Observed()
        load = LoadPlan(ModelSource("folder"), device="cuda", parallel=parallel)
        with Channel(lambda event: None).phasing("load") as steps, load_progress(load, steps, 0, observed):
            pass
        assert (reset, observed.peak_bytes["device"]) == (indices, expected)


def test_a_real_load_has_stages_and_peaks() -> None:
    from tests.support.local_worker import LocalWorker

    bench = LocalWorker(plan_of("pocket").load).model
    assert set(bench.observed.stages_s) == {"tokenizer", "read"}
    assert all(took_s > 0 for took_s in bench.observed.stages_s.values())
    assert bench.observed.peak_bytes["host"] > bench.weight_bytes and set(bench.observed.peak_bytes) == {"host"}
    assert bench.counts == {"load_warmup_bytes": 0, "load_moved_bytes": 0, "drawn_tensors": 0}
    assert resolve("pocket").source.kind == "embedded"
    random = LocalWorker(plan_of("random:pocket").load).model
    assert set(random.observed.stages_s) == {"fill"}
