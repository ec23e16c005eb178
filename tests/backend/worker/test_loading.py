"""What is seen of a load: seconds by stage, largest memory, and that the warm-up is left out where it shall be."""

import time
from typing import Any

import pytest
import torch
from transformers import modeling_utils

from backend.models import resolve
from backend.plan import LoadingKind, LoadPlan, ModelSource
from backend.worker.loading import Observed, device_keywords, moved, observing
from tests.helpers import plan_of


def plan(loading: LoadingKind, device: str = "cuda") -> LoadPlan:
    return LoadPlan(ModelSource("folder"), device=device, loading=loading)


def test_stages_add_up_and_what_is_inside_counts_once() -> None:
    observed = Observed()
    begin_s = time.perf_counter()
    with observed.stage("read"):
        time.sleep(0.02)
        with observed.stage("warm_up"):
            time.sleep(0.03)
    with observed.stage("read"):
        time.sleep(0.01)
    whole_s = time.perf_counter() - begin_s
    assert observed.stages_s["read"] >= 0.03 and observed.stages_s["warm_up"] >= 0.03
    assert 0.06 <= sum(observed.stages_s.values()) <= whole_s


@pytest.mark.parametrize(
    ("loading", "device", "keywords"),
    [
        ("device_map", "cuda", {"device_map": "cuda"}),
        ("no-warmup", "cuda", {"device_map": "cuda"}),
        ("plain", "cuda", {}),
        ("device_map", "cpu", {}),
    ],
)
def test_the_device_map_is_given_where_it_shall_be(loading: LoadingKind, device: str, keywords: Any) -> None:
    assert device_keywords(plan(loading, device)) == keywords


@pytest.mark.parametrize(("loading", "runs"), [("device_map", 1), ("no-warmup", 0), ("plain", 1)])
def test_the_warm_up_runs_or_not_and_is_put_back(
    loading: LoadingKind, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what is decided here: without a GPU there is no allocator to look at."""
    seen: list[Any] = []
    monkeypatch.setattr(modeling_utils, "caching_allocator_warmup", lambda *args: seen.append(args))
    plain = modeling_utils.caching_allocator_warmup
    observed = Observed()
    with observing(plan(loading), observed):
        modeling_utils.caching_allocator_warmup(None, {}, None)
    assert len(seen) == runs and modeling_utils.caching_allocator_warmup is plain
    assert observed.counts == {"load_warmup_bytes": 0, "load_moved_bytes": 0}
    assert set(observed.stages_s) == {"read", "warm_up"} if runs else {"read"}


def test_what_loads_the_weights_calls_the_function_that_is_replaced() -> None:
    """If transformers warmed its allocator up in another way, `no-warmup` would be no such thing."""
    code = modeling_utils.PreTrainedModel._load_pretrained_model.__code__
    assert "caching_allocator_warmup" in code.co_names
    assert code.co_filename == modeling_utils.__file__


def test_what_lies_in_host_memory_is_counted_and_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The meta device stands in for a GPU."""
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    model, observed = torch.nn.Linear(8, 4), Observed()
    assert moved(model, plan("device_map", "meta"), observed).weight.device.type == "cpu"
    assert moved(model, plan("plain", "cpu"), observed).weight.device.type == "cpu"
    assert observed.counts == {}
    observed.counts["load_moved_bytes"] = 0
    assert moved(model, plan("plain", "meta"), observed).weight.device.type == "meta"
    assert observed.counts["load_moved_bytes"] == 4 * (8 * 4 + 4)
    assert set(observed.stages_s) == {"move"}


def test_a_real_load_tells_its_stages_and_peaks() -> None:
    from backend.worker.loader import load
    from tests.backend.worker.test_evidence import Recorder

    bench = load(plan_of("pocket").load, Recorder())
    assert set(bench.observed.stages_s) == {"tokenizer", "read"}
    assert all(took_s > 0 for took_s in bench.observed.stages_s.values())
    assert bench.observed.peak_bytes["host"] > bench.weight_bytes and set(bench.observed.peak_bytes) == {"host"}
    assert bench.counts == {"load_warmup_bytes": 0, "load_moved_bytes": 0}
    assert resolve("pocket").source.kind == "embedded"
    random = load(plan_of("random:pocket").load, Recorder())
    assert set(random.observed.stages_s) == {"fill"}
