"""A run as one document for programs (schema 3)."""

import bisect
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tokendyno.backend.arms.check import Checked
from tokendyno.backend.counts import RunCounts
from tokendyno.backend.messages import Compiled
from tokendyno.backend.models import resolve
from tokendyno.backend.predict.kv import kv_series
from tokendyno.backend.predict.parallel import shard
from tokendyno.backend.runs.arm_series import ArmSeries, kv_at
from tokendyno.backend.runs.gate import FindReading, Gate, gate_of
from tokendyno.backend.runs.records import PrefillBound
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.views.batch_document import batch_document
from tokendyno.backend.views.card import card_of
from tokendyno.backend.views.gate import gate_document
from tokendyno.backend.views.memory_check import MemoryCheck, memory_checks_of
from tokendyno.backend.views.prompt_pass import prompt_pass
from tokendyno.backend.views.quality_document import quality_document
from tokendyno.backend.views.schema import (
    ArmDocument,
    Check,
    CompileReport,
    Document,
    KvSeries,
    MemoryChecks,
    PrefillRoofline,
    Recompile,
    Repeat,
    Roofline,
    StepDocument,
    arm_head,
    arm_measured,
    head,
)


def document(run: Run, kv_predicted: Mapping[str, KvSeries], gate: Gate | None = None) -> Document:
    """The document of a run as it is now. `kv_predicted`: by arm; `gate`: the quality of B against A."""
    now = run.snapshot()
    return Document(
        **head(now),
        workload=now.request.workload,
        unit=now.unit,
        comparison=now.comparison(),
        texts=now.texts(),
        verdict=card_of(now, gate) or msgspec.UNSET,
        quality=gate_document(gate) or msgspec.UNSET,
        unasked=now.unasked or msgspec.UNSET,
        arms=[_arm(now, name, kv_predicted[name]) for name in now.arms],
    )


def _arm(run: Snapshot, name: str, kv_predicted: KvSeries) -> ArmDocument:
    arm, summary = run.arms[name], run.summary(name)
    started, finished = arm.started, arm.finished
    decodes = run.unit == "token"
    return ArmDocument(
        **arm_head(run, name),
        **arm_measured(run, name),
        prompt_tokens=started.prompt_tokens if started else None,
        ttft_s=arm.latency_s[0] if arm.latency_s and decodes else None,
        latency_s=arm.latency_s,
        time_s=arm.t_s,
        kv_bytes=KvSeries(arm.kv_sliding, arm.kv_full),
        kv_bytes_predicted=kv_predicted,
        memory_bytes=arm.memory_bytes,
        ranks=(finished.ranks if finished else []) or msgspec.UNSET,
        memory_check=_memory_checks(memory_checks_of(run, name, summary)),
        roofline=Roofline(
            [point.length for point in arm.roofline],
            [point.seconds for point in arm.roofline],
            arm.roofline_note,
            arm.roofline_work,
            _prefill(arm.prefill, summary.ttft_s),
        ),
        text=arm.text,
        token_ids=arm.ids if decodes else [],
        stopped_by=finished.reason if finished else None,
        repeats=_repeats(arm),
        launch_bound=summary.launch_bound,
        compile=_compile_report(finished.compiled) if finished and finished.compiled else None,
        summary=summary,
        step_time=_step_document(arm),
        prompt_pass=prompt_pass(run, name, summary) or msgspec.UNSET,
    )


def _prefill(bound: PrefillBound | None, ttft_s: float | None) -> PrefillRoofline | msgspec.UnsetType:
    if bound is None:
        return msgspec.UNSET
    share = bound.seconds / ttft_s if ttft_s else None
    return PrefillRoofline(bound.seconds, share, bound.limited_by, bound.work)


def _step_document(arm: ArmSeries) -> StepDocument | msgspec.UnsetType:
    """Left out until the arm has ended, and of runs that were recorded before steps were traced."""
    if arm.finished is None or not (arm.finished.step or arm.finished.no_step):
        return msgspec.UNSET
    step, reads = arm.finished.step, arm.reads
    return StepDocument(
        step.seconds if step else None,
        step.steps if step else 0,
        step.gpu if step else None,
        step.parts_s if step else {},
        step.others if step else {},
        reads.weight_bytes if reads else None,
        reads.kv_bytes if reads else None,
        reads.bytes_per_s if reads else None,
        arm.finished.no_step,
    )


def _repeats(arm: ArmSeries) -> list[Repeat]:
    return [
        Repeat(latency_s, arm.finishes[n].extra if n in arm.finishes else RunCounts())
        for n, latency_s in sorted(arm.repeats_s.items())
    ]


def _memory_checks(checks: list[MemoryCheck]) -> MemoryChecks:
    def compared(part: MemoryCheck) -> Check:
        return Check(part.predicted, part.measured, part.error_percent, part.margin_percent or msgspec.UNSET)

    return MemoryChecks(**{part.part: compared(part) for part in checks})


def _compile_report(found: Compiled) -> CompileReport:
    return CompileReport(
        cold_s=found.cold_s,
        graphs=len(found.graphs),
        graph_s=[graph.seconds for graph in found.graphs],
        graph_breaks=found.breaks,
        recompiles=[Recompile(graph.guard, graph.seconds) for graph in found.graphs if graph.guard],
        cudagraph_skips=found.skips,
        cudagraph_records=found.records,
        cache_hits=found.hits,
        cache_misses=found.misses,
        artefacts_loaded_bytes=found.loaded_bytes,
        artefacts_saved_bytes=found.saved_bytes,
        cold_before_s=found.cold_before_s or None,
        saved_s=found.cold_before_s - found.cold_s if found.cold_before_s else None,
        stages_s=found.stages_s or msgspec.UNSET,
        graph_stages_s=[graph.stages_s for graph in found.graphs] if found.stages_s else msgspec.UNSET,
    )


def recorded_series(run: Run) -> dict[str, KvSeries]:
    """The same as the run itself recorded it, straight between corners, for other machines and models."""
    series: dict[str, KvSeries] = {}
    for name, arm in run.snapshot().arms.items():
        series[name] = KvSeries([], [])
        if arm.started is not None and arm.predicted_kv:
            after = [bisect.bisect_right(arm.t_s, t_s) - 1 for t_s in arm.t_s]
            sizes = [kv_at(arm.predicted_kv, arm.started.prompt_tokens + at) for at in after]
            series[name] = KvSeries([round(sliding) for sliding, _ in sizes], [round(full) for _, full in sizes])
    return series


def predicted_series(run: Run, models_dir: Path | None, checked: Mapping[str, Checked]) -> dict[str, KvSeries]:
    """Predicted KV bytes of every arm, one entry per step, from the model's config alone."""
    facts, now = resolve(run.request.model, models_dir), run.snapshot()
    series: dict[str, KvSeries] = {}
    for name, arm in now.arms.items():
        if arm.started is None or not arm.t_s:
            series[name] = KvSeries([], [])
            continue
        plan, itemsize = checked[name].plan, checked[name].itemsize
        rank = shard(facts, plan.load.parallel.tensor, plan.load.parallel.expert)
        sizes = kv_series(
            rank,
            plan.generate.cache,
            arm.started.prompt_tokens,
            len(arm.t_s),
            arm.started.batch_size,
            itemsize,
            arm.started.places,
        )
        after = [sizes[bisect.bisect_right(arm.t_s, t_s) - 1] for t_s in arm.t_s] if sizes else []
        series[name] = KvSeries([size.sliding for size in after], [size.unwindowed for size in after])
    return series


def document_of(run: Run, find: FindReading) -> msgspec.Struct:
    """The document of its kind, without the model or the machine of the run. `find`: a reading by the same arms."""
    if run.request.quality is not None:
        return quality_document(run)
    if run.request.traffic is not None:
        return batch_document(run)
    gate = gate_of(run.snapshot(), find) if run.ended else None
    return document(run, recorded_series(run), gate)
