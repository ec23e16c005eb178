"""A run as one JSON document (schema 1) and as a readable table."""

from typing import Any

from backend import hardware
from backend.models import resolve
from backend.predict.kv import kv_series
from backend.redact import plain
from backend.runs import Lane, Run
from backend.statistics import Summary
from backend.view import Tile, tiles

SCHEMA = 1


def document(run: Run, kv_predicted: dict[str, dict[str, list[int]]]) -> dict[str, Any]:
    """The result's stable shape; every series has one entry for each generated token of repeat 0.

    Seconds and bytes throughout. `latency_s[0]` is the time to first token; the rest are decode steps.
    """
    created = run.created
    return {
        "schema": SCHEMA,
        "run": run.id,
        "created": created.created,
        "status": run.status,
        "message": run.message,
        "model": created.request.model,
        "model_label": created.model_label,
        "model_note": created.model_note,
        "machine": created.machine,
        "versions": hardware.versions(),
        "workload": _workload(run),
        "arms": [_arm(run, lane, kv_predicted[name]) for name, lane in run.lanes.items()],
    }


def _workload(run: Run) -> dict[str, Any]:
    work = run.request.workload
    return {name: getattr(work, name) for name in work.__dataclass_fields__}


def _arm(run: Run, lane: Lane, predicted: dict[str, list[int]]) -> dict[str, Any]:
    planned = next(arm for arm in run.created.arms if arm.name == lane.name)
    ledger = run.ledger(lane.name)
    finished = lane.finished
    return {
        "name": lane.name,
        "state": lane.state,
        "requested": planned.requested,
        "planned": planned.planned,
        "effective": {row.axis: row.effective for row in ledger},
        "evidence": [
            {
                "axis": row.axis, "requested": row.requested, "planned": row.planned, "effective": row.effective,
                "proof": row.proof, "status": row.status, "reason": row.reason,
            }
            for row in ledger
        ],
        "verdicts": [
            {"level": v.level, "axis": v.axis, "reason": v.reason, "source": v.source} for v in planned.verdicts
        ],
        "prompt_tokens": lane.started.prompt_tokens if lane.started else None,
        "notes": lane.started.notes if lane.started else [],
        "ttft_s": lane.latency_s[0] if lane.latency_s else None,
        "latency_s": lane.latency_s,
        "time_s": lane.t_s,
        "kv_bytes": {"sliding": lane.kv_sliding, "full": lane.kv_full},
        "kv_bytes_predicted": predicted,
        "memory_bytes": lane.memory_bytes,
        "memory_label": run.memory_label,
        "memory_samples": {"t_s": lane.sample_t_s, "bytes": lane.sample_bytes},
        "memory_predicted_bytes": planned.predicted_bytes,
        "weight_bytes": lane.loaded.weight_bytes if lane.loaded else None,
        "parameters": lane.loaded.parameters if lane.loaded else None,
        "text": lane.text,
        "token_ids": lane.ids,
        "phases_s": {phase.name: phase.seconds for phase in lane.phases.values()},
        "stopped_by": finished.reason if finished else None,
        "wall_s": finished.wall_s if finished else None,
        "clock": finished.clock if finished else None,
        "extra": finished.extra if finished else {},
        "repeats": [{"latency_s": values} for _, values in sorted(lane.repeats_s.items())],
        "summary": run.summary(lane.name)._asdict(),
    }  # fmt: skip


def predicted_series(run: Run, models_dir: Any, plans: Any) -> dict[str, dict[str, list[int]]]:
    """The predicted KV bytes of every arm, one entry for each generated token, from the config alone.

    `plans`: arm name -> `rules.Checked`.
    """
    facts = resolve(run.request.model, models_dir)
    series: dict[str, dict[str, list[int]]] = {}
    for name, lane in run.lanes.items():
        sizes: tuple[Any, ...] = ()
        if lane.started is not None and lane.t_s:
            started, checked = lane.started, plans[name]
            sizes = kv_series(
                facts, checked.plan.generate.cache, started.prompt_tokens, len(lane.t_s), started.batch_size,
                checked.itemsize, started.prompt_tokens + started.max_new_tokens,
            )  # fmt: skip
        series[name] = {"sliding": [s.sliding for s in sizes], "full": [s.full for s in sizes]}
    return series


def table(run: Run) -> str:
    """The run for a terminal: figures side by side, then the ledger, then the texts."""
    created = run.created
    names = list(run.lanes)
    gpu = next((value for name, value in created.machine.items() if name[:3] == "gpu" and name[3:].isdecimal()), None)
    lines = [f"{created.model_label} on {gpu or created.machine.get('cpu', 'this machine')}"]
    if created.model_note:
        lines.append(created.model_note)
    figures: dict[str, list[Tile]] = {}
    for name, lane in run.lanes.items():
        summary: Summary = run.summary(name)
        figures[name] = tiles(summary, run.memory_label, run.request.workload.batch_size, len(lane.repeats_s))
    width = 26
    lines += ["", " " * 24 + "".join(f"{'arm ' + n:<{width}}" for n in names)]
    for i, tile in enumerate(figures[names[0]]):
        values = [figures[n][i] for n in names]
        line = f"{tile.label:<24}" + "".join(f"{(v.value + ' ' + v.unit).strip():<{width}}" for v in values)
        notes = [v.note for v in values]
        if len(set(notes)) == 1:
            lines.append((line + notes[0]).rstrip())
        else:
            lines += [line.rstrip(), (" " * 24 + "".join(f"{note:<{width}}" for note in notes)).rstrip()]
    counts = [str(len(lane.t_s)) for lane in run.lanes.values()]
    lines.append((f"{'Tokens':<24}" + "".join(f"{count:<{width}}" for count in counts)).rstrip())
    for name in names:
        lines += ["", f"Arm {name}: requested -> planned -> effective"]
        for row in run.ledger(name):
            mark = {"proved": "proved", "fallback": "FELL BACK", "failed": "NOT IN EFFECT"}[row.status]
            steps = f"{row.requested} -> {row.planned} -> {row.effective}"
            lines.append(f"  {row.axis:<10} {steps}  [{mark}] {row.proof}")
            if row.reason:
                lines.append(f"             {row.reason}")
    texts = [plain(lane.text) for lane in run.lanes.values()]
    if len(texts) == 2 and texts[0] == texts[1]:
        lines += ["", "Both arms wrote the same text:", texts[0]]
    else:
        for name, text in zip(names, texts, strict=True):
            lines += ["", f"Text of arm {name}:", text]
    return "\n".join(lines)
