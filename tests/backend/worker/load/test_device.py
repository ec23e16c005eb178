"""Measurements of a load: seconds by stage and peak memory, and the start that they are a part of; and the allocator's
warm-up, skipped where planned."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
import torch
from transformers import modeling_utils

from tests.support.runs import created
from tests.support.worker import plan_of
from tokendyno.backend.counts import RunCounts
from tokendyno.backend.messages import Event, Finished, Loaded, PhaseName, Progress
from tokendyno.backend.models import resolve
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import LoadingKind, LoadPlan, ProjectionsKind
from tokendyno.backend.runs.records import ArmEvent
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.start import Start, start_of
from tokendyno.backend.worker import channel as channels
from tokendyno.backend.worker.load import device
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


class Clock:
    """A clock that moves only when told to, in place of the module `time`."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def perf_counter(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


SPANS = ("start", "import", "context", "tokenizer", "move", "quantize", "compile", "capture", "warmup", "prefill")
"""Where a delay is injected; a tokenizer is read, and what compiling does besides its stages is a warm-up."""


@pytest.mark.parametrize("late", SPANS)
def test_a_delay_on_an_injected_clock_lands_in_its_span_and_spans_sum_to_the_seconds_that_passed(
    late: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, arms = Clock(), list[Start]()
    for module in (channels, device):
        monkeypatch.setattr(module, "time", clock)

    def started(delays_s: Mapping[str, float]) -> Start:
        run, observed, begin_s = Run(created(arms="A")), Observed(), clock.now_s

        def pass_time(span: str) -> None:
            clock.sleep(1.0 + delays_s.get(span, 0.0))

        def note(event: Event) -> None:
            run.append(ArmEvent("A", 0, clock.now_s - begin_s, event))

        channel = channels.QueueChannel(note)
        note(Progress("start", "begin", 0.0))
        phases: tuple[PhaseName, ...] = ("start", "import")
        for phase in phases:  # as the conductor reports them
            pass_time(phase)
            note(Progress(phase, "end", 1.0 + delays_s.get(phase, 0.0)))
        with observed.stage("context"):
            pass_time("context")
        with channel.phasing("load"), observed.stage("read"):
            for stage in ("tokenizer", "move", "quantize"):
                with observed.stage(stage):
                    pass_time(stage)
        channel.send(Loaded(1, 1, False, observed.stages_s))
        with channel.phasing("compile"):
            pass_time("compile")
        with channel.phasing("warmup"):
            pass_time("warmup")
            captured_at_s = clock.now_s
            pass_time("capture")
        counts = RunCounts(capture_s=clock.now_s - captured_at_s)
        begun_s = clock.now_s
        note(Progress("run", "begin", 0.0))
        pass_time("prefill")
        ttft_s = clock.now_s - begun_s
        note(Finished("length", "a", ttft_s, ttft_s, 1, "RSS", "clock", [], counts))
        found = start_of(run.snapshot().arms["A"], alone=True)
        assert found is not None and found.total_s == pytest.approx(clock.now_s - begin_s, rel=0.02)
        assert "between" not in found.spans_s
        return found

    for delays_s in ({}, {late: 7.0}):
        arms.append(started(delays_s))
    grown = {span: seconds - arms[0].spans_s[span] for span, seconds in arms[1].spans_s.items()}
    span = {"tokenizer": "read", "compile": "warmup"}.get(late, late)
    assert {span: seconds for span, seconds in grown.items() if seconds > 1e-9} == pytest.approx({span: 7.0})
