"""A run as one document for programs (schema 3): of one prompt, of many requests, of given texts."""

import bisect
from typing import Any

import msgspec

from tokendyno.backend.evidence import TOKENS
from tokendyno.backend.messages import IDLE, Compiled
from tokendyno.backend.quality import Quality
from tokendyno.backend.runs.arm_series import ArmSeries, kv_at
from tokendyno.backend.runs.batch_series import BatchSeries, RequestRow
from tokendyno.backend.runs.quality import FindReading, Gate, ReadingDifference, gate_of, readings, whole_reading
from tokendyno.backend.runs.records import PrefillBound, Unit
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.traffic import TrafficRequest
from tokendyno.backend.views import schema
from tokendyno.backend.views.card import card_of
from tokendyno.backend.views.details import MemoryCheck, memory_checks_of, prompt_pass
from tokendyno.backend.views.ledger import ledger_rows
from tokendyno.backend.views.quality import cost_of, gate_document, quality_sentence
from tokendyno.backend.views.sentences import interference_of
from tokendyno.backend.views.step_time import untraced


def document(run: Run, gate: Gate | None = None) -> schema.Document:
    """The document of a run as it is now. `gate`: the quality of B against A."""
    now = run.snapshot()
    return schema.Document(
        **head(now),
        workload=now.request.workload,
        unit=now.unit,
        comparison=now.comparison,
        texts=now.texts,
        verdict=card_of(now, gate) or msgspec.UNSET,
        quality=gate_document(gate) or msgspec.UNSET,
        unasked=now.unasked or msgspec.UNSET,
        arms=[_arm(now, name) for name in now.arms],
    )


def _arm(run: Snapshot, name: str) -> schema.ArmDocument:
    arm, summary = run.arms[name], run.summaries[name]
    started, finished, predicted = arm.started, arm.finished, arm.predicted
    decodes = run.unit == "token"
    return schema.ArmDocument(
        **arm_measured(run, name),
        prompt_tokens=started.prompt_tokens if started else None,
        ttft_s=arm.latency_s[0] if arm.latency_s and decodes else None,
        latency_s=arm.latency_s,
        time_s=arm.t_s,
        kv_bytes=schema.KvSeries(arm.kv_sliding, arm.kv_full),
        kv_bytes_predicted=_kv_predicted(arm, run.unit),
        memory_bytes=arm.memory_bytes,
        ranks=(finished.ranks if finished else []) or msgspec.UNSET,
        memory_check=_memory_checks(memory_checks_of(run, name)),
        roofline=schema.Roofline(
            [point.length for point in predicted.roofline],
            [point.seconds for point in predicted.roofline],
            predicted.roofline_note,
            predicted.roofline_work,
            _prefill(predicted.prefill, summary.ttft_s),
        ),
        text=arm.text,
        token_ids=arm.ids if decodes else [],
        stopped_by=finished.reason if finished else None,
        repeats=[
            schema.Repeat(latency_s, arm.finishes[repeat].extra if repeat in arm.finishes else {})
            for repeat, latency_s in sorted(arm.repeats_s.items())
        ],
        launch_bound=summary.launch_bound,
        compile=_compile_report(finished.compiled) if finished and finished.compiled else None,
        summary=summary,
        step_time=_step_document(run, arm),
        prompt_pass=prompt_pass(run, name) or msgspec.UNSET,
    )


def _prefill(bound: PrefillBound | None, ttft_s: float | None) -> schema.PrefillRoofline | msgspec.UnsetType:
    if bound is None:
        return msgspec.UNSET
    share = bound.seconds / ttft_s if ttft_s else None
    return schema.PrefillRoofline(bound.seconds, share, bound.limited_by, bound.work)


def _step_document(run: Snapshot, arm: ArmSeries) -> schema.StepDocument | msgspec.UnsetType:
    """Left out until the arm has ended, and in runs that were recorded before steps were traced."""
    if arm.finished is None or not (arm.finished.step or arm.finished.no_step):
        return msgspec.UNSET
    step, reads = arm.finished.step, arm.predicted.reads
    return schema.StepDocument(
        step.seconds if step else None,
        step.steps if step else 0,
        step.gpu if step else None,
        step.parts_s if step else {},
        step.others if step else {},
        reads.weight_bytes if reads else None,
        reads.kv_bytes if reads else None,
        reads.bytes_per_s if reads else None,
        untraced(run, arm.finished),
    )


def _memory_checks(checks: list[MemoryCheck]) -> schema.MemoryChecks:
    return schema.MemoryChecks(
        **{
            part.part: schema.Check(
                part.predicted, part.measured, part.error_percent, part.margin_percent or msgspec.UNSET
            )
            for part in checks
        }
    )


def _compile_report(compiled: Compiled) -> schema.CompileReport:
    return schema.CompileReport(
        cold_s=compiled.cold_s,
        graphs=len(compiled.graphs),
        graph_s=[graph.seconds for graph in compiled.graphs],
        graph_breaks=compiled.breaks,
        recompiles=[schema.Recompile(graph.guard, graph.seconds) for graph in compiled.graphs if graph.guard],
        cudagraph_skips=compiled.skips,
        cudagraph_records=compiled.records,
        cache_hits=compiled.hits,
        cache_misses=compiled.misses,
        artefacts_loaded_bytes=compiled.loaded_bytes,
        artefacts_saved_bytes=compiled.saved_bytes,
        cold_before_s=compiled.cold_before_s or None,
        saved_s=compiled.cold_before_s - compiled.cold_s if compiled.cold_before_s else None,
        stages_s=compiled.stages_s or msgspec.UNSET,
        graph_stages_s=[graph.stages_s for graph in compiled.graphs] if compiled.stages_s else msgspec.UNSET,
    )


def _kv_predicted(arm: ArmSeries, unit: Unit) -> schema.KvSeries:
    """Predicted KV bytes after each step, interpolated between the corners that the run recorded."""
    if unit == "forward":
        return schema.KvSeries([0] * len(arm.t_s), [0] * len(arm.t_s))
    if arm.started is None or not arm.predicted.kv:
        return schema.KvSeries([], [])
    cached = [arm.started.prompt_tokens + bisect.bisect_right(arm.t_s, t_s) - 1 for t_s in arm.t_s]
    sizes = [kv_at(arm.predicted.kv, length) for length in cached]
    return schema.KvSeries([round(sliding) for sliding, _ in sizes], [round(full) for _, full in sizes])


def document_of(run: Run, find: FindReading) -> msgspec.Struct:
    """The document of a run of any kind. `find`: a reading by the same arms."""
    if run.request.quality is not None:
        return quality_document(run)
    if run.request.traffic is not None:
        return batch_document(run)
    gate = gate_of(run.snapshot(), find) if run.ended else None
    return document(run, gate)


# --- what documents of all kinds have --------------------------------------------------------------


def head(run: Snapshot) -> dict[str, Any]:
    """Which run it is, how it ended, of which model, and where: `schema` to `versions`."""
    created = run.created
    return {
        "schema": 3,
        "run": created.id,
        "created": created.created,
        "status": run.status,
        "message": run.message,
        "model": created.request.model,
        "model_label": created.model_label,
        "model_note": created.model_note,
        "machine": created.machine,
        "versions": created.versions,
    }


def arm_head(run: Snapshot, name: str) -> dict[str, Any]:
    """What was asked for, what was planned, and what the ledger and the rules say: `name` to `verdicts`."""
    planned, ledger = run.planned(name), run.ledgers[name]
    return {
        "name": name,
        "state": run.arms[name].state,
        "values": {},
        "environment": {},
        "engine": "transformers",
        "requested": planned.requested,
        "planned": planned.planned,
        "effective": {row.finding.axis: row.finding.effective for row in ledger if row.finding.axis != TOKENS},
        "evidence": ledger_rows(ledger),
        "verdicts": [schema.VerdictRow(v.level, v.axis, v.reason, v.source) for v in planned.verdicts],
    }


def arm_measured(run: Snapshot, name: str) -> dict[str, Any]:
    """Its head, and what is measured of it in a run of one prompt or many: memory, load, phases, clocks, counters."""
    arm = run.arms[name]
    started, loaded, finished = arm.started, arm.loaded, arm.finished
    return arm_head(run, name) | {
        "notes": started.notes if started else [],
        "memory_label": run.memory_label,
        "memory_samples": schema.MemorySamples(arm.sample_t_s, arm.sample_bytes),
        "memory_predicted_bytes": run.planned(name).predicted_bytes,
        "weight_bytes": loaded.weight_bytes if loaded else None,
        "parameters": loaded.parameters if loaded else None,
        "load": schema.Load(loaded.stages_s, loaded.peak_bytes) if loaded else schema.Load({}, {}),
        "phases_s": {phase.name: phase.seconds for phase in arm.phases.values()},
        "wall_s": finished.wall_s if finished else None,
        "clock": finished.clock if finished else None,
        "extra": finished.extra if finished else {},
        "interference": interference_of(run, name),
        "annotations": [schema.Annotated(m.kind, m.token, m.t_s, m.seconds, m.text) for m in arm.annotations],
    }


# --- many requests, given texts ---------------------------------------------------------------------


def batch_document(run: Run) -> schema.BatchDocument:
    now = run.snapshot()
    traffic = now.request.traffic
    assert traffic is not None
    return schema.BatchDocument(
        **head(now),
        workload=now.request.workload,
        traffic=schema.TrafficDocument(
            traffic.label, traffic.concurrent, traffic.pages, traffic.limits, traffic.requests
        ),
        same_tokens=now.same_tokens(),
        arms=[_batch_arm(now, name) for name in now.arms],
        comparison=now.comparison or msgspec.UNSET,
        verdict=card_of(now) or msgspec.UNSET,
        unasked=now.unasked or msgspec.UNSET,
    )


def _batch_arm(run: Snapshot, name: str) -> schema.BatchArm:
    arm, summary = run.arms[name], run.batch_summaries[name]
    batch = arm.batch
    assert run.request.traffic is not None
    return schema.BatchArm(
        **arm_measured(run, name),
        useful_tokens_s=summary.useful_tokens_s,
        runs=list(run.useful_rates(name).values()),
        summary=summary,
        requests=[
            _request(batch.requests.get(number) or RequestRow(), request)
            for number, request in enumerate(run.request.traffic.requests)
        ],
        steps=_steps(batch),
        pages=_pages(arm),
    )


def _request(row: RequestRow, request: TrafficRequest) -> schema.RequestDocument:
    return schema.RequestDocument(
        request.arrival_s,
        row.start_s,
        row.first_token_s,
        row.end_s,
        row.prompt_tokens or request.tokens,
        len(row.ids),
        row.ids,
        row.token_s,
        row.waited_for,
        row.reason,
        row.text,
    )


def _steps(batch: BatchSeries) -> schema.StepsDocument:
    parts = list(batch.parts_of_steps())
    return schema.StepsDocument(
        begin_s=batch.begin_s,
        end_s=batch.end_s,
        active=[sum(kind != IDLE for _, kind, _ in step) for step in parts],
        tokens=[sum(tokens for _, kind, tokens in step if kind != IDLE) for step in parts],
        padding=batch.padding,
        idle=[sum(kind == IDLE for _, kind, _ in step) for step in parts],
        waiting=batch.waiting,
    )


def _pages(arm: ArmSeries) -> schema.PagesDocument | None:
    batch = arm.batch
    if batch.pages is None:
        return None
    moves = {
        "step": batch.move_step,
        "group": batch.move_group,
        "page": batch.move_page,
        "request": batch.move_request,
    }
    in_use = batch.pages_in_use()
    predicted = arm.predicted.memory.get("kv")
    return schema.PagesDocument(batch.pages.groups, batch.pages.cache_bytes, predicted, batch.free_bytes, in_use, moves)


def quality_document(run: Run) -> schema.QualityDocument:
    now = run.snapshot()
    quality, whole = now.request.quality, whole_reading(now)
    assert quality is not None
    difference: ReadingDifference | None = whole.difference if whole else None
    return schema.QualityDocument(
        **head(now),
        texts=readings(now),
        all=whole,
        cost=cost_of(difference) if difference else None,
        sentence=quality_sentence(now),
        kl_nats=difference.kl_nats if difference else None,
        top1_agreement=difference.top1_agreement if difference else None,
        first_divergence=difference.first_divergence if difference else None,
        perplexity_ratio=difference.perplexity_ratio if difference else None,
        asked=quality,
        arms=[_quality_arm(now, quality, name) for name in now.arms],
        unasked=now.unasked or msgspec.UNSET,
    )


def _quality_arm(run: Snapshot, quality: Quality, name: str) -> schema.QualityArm:
    return schema.QualityArm(
        **arm_head(run, name),
        positions=[
            schema.PositionsDocument(text.name, score.ids, score.nll_nats, score.top, score.kl_nats)
            for text, score in zip(quality.texts, run.arms[name].scores, strict=False)
        ],
        summary=run.summaries[name],
    )
