"""Measurements of a load: seconds by stage and peak memory; and the allocator's warm-up, skipped where planned."""

import time
from typing import Any

import msgspec
import pytest
import torch
from transformers import modeling_utils

from tests.support.decode_loop import greedy, prompt
from tests.support.tiny_models import build
from tests.support.worker import plan_of
from tokendyno.backend.models import resolve
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations.tensor_bytes import weight_tensors
from tokendyno.backend.plan import LoadingKind, LoadPlan, ProjectionsKind
from tokendyno.backend.worker.load.device import Observed, device_keywords, lay_anew, moved, observing


def plan(loading: LoadingKind, device: str = "cuda") -> LoadPlan:
    return LoadPlan(ModelSource("folder"), device=device, loading=loading)


def test_an_inner_stage_is_not_counted_twice() -> None:
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


def test_transformers_calls_the_function_that_is_replaced() -> None:
    """If transformers warmed the allocator up in another way, `no-warmup` would have no effect."""
    code = modeling_utils.PreTrainedModel._load_pretrained_model.__code__
    assert "caching_allocator_warmup" in code.co_names
    assert code.co_filename == modeling_utils.__file__


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


def test_tensors_laid_anew_have_the_same_bytes_and_share_what_they_shared() -> None:
    """Dense and quantized ones, tied ones and views."""
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    model = build("llama")
    quantize_(model.model.layers[0], Int8WeightOnlyConfig(version=2))
    model.lm_head.weight = model.model.embed_tokens.weight
    view = model.model.norm.weight.detach()[2:]
    asked = prompt(9)
    expected, tensors = greedy(model, asked), list(weight_tensors(model))
    before = [tensor.clone() for tensor in tensors]
    lay_anew(iter(tensors))
    assert all(torch.equal(*pair) for pair in zip(tensors, before, strict=True))
    assert torch.equal(greedy(model, asked), expected)
    assert view.data_ptr() == model.model.norm.weight[2:].data_ptr()
    assert model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()


def test_all_memory_is_free_before_any_of_it_is_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else there would still be something between the tensors; and the largest come first."""
    tensors, sizes = [torch.ones(size) for size in (10, 1000, 100)], []
    taken = torch.UntypedStorage.resize_

    def resize(storage: Any, size: int) -> Any:
        sizes.append(size)
        return taken(storage, size)

    monkeypatch.setattr(torch.UntypedStorage, "resize_", resize)
    lay_anew(tensors)
    assert sizes == [0, 0, 0, 4000, 400, 40]
    assert all(tensor.eq(1).all() for tensor in tensors)
