"""A run as one JSON document (schema 1) and as a readable table."""

import bisect
from typing import Any

from backend import hardware
from backend.figures import named, tiles, verdict
from backend.lanes import Lane
from backend.marking import mark_points
from backend.messages import Compiled
from backend.models import resolve
from backend.predict.kv import kv_series
from backend.redact import plain
from backend.runs import Run
from backend.view import Tile

SCHEMA = 1
_LEFT = 40
_MOST_MARKS = 5


def document(run: Run, kv_predicted: dict[str, dict[str, list[int]]]) -> dict[str, Any]:
    """The result's stable shape; every series has one entry for each generated token of repeat 0.

    Seconds and bytes throughout. `latency_s[0]` is the time to first token; the rest are decode steps. With `unit`
    "forward" (an encoder) a series has one entry for each forward pass, all alike, and there is no first token.
    """
    created, comparison = run.created, run.comparison()
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
        "unit": run.unit,
        "comparison": comparison._asdict() if comparison else None,
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
        "ttft_s": lane.latency_s[0] if lane.latency_s and run.unit == "token" else None,
        "latency_s": lane.latency_s,
        "time_s": lane.t_s,
        "kv_bytes": {"sliding": lane.kv_sliding, "full": lane.kv_full},
        "kv_bytes_predicted": predicted,
        "memory_bytes": lane.memory_bytes,
        "memory_label": run.memory_label,
        "memory_samples": {"t_s": lane.sample_t_s, "bytes": lane.sample_bytes},
        "memory_predicted_bytes": planned.predicted_bytes,
        "memory_check": {check.part: check.as_json() for check in run.checks(lane.name)},
        "floor": {
            "length": [point.length for point in lane.floor], "seconds": [point.seconds for point in lane.floor],
            "note": lane.floor_note, "work": lane.floor_work,
        },
        "weight_bytes": lane.loaded.weight_bytes if lane.loaded else None,
        "parameters": lane.loaded.parameters if lane.loaded else None,
        "load": {
            "stages_s": lane.loaded.stages_s if lane.loaded else {},
            "peak_bytes": lane.loaded.peak_bytes if lane.loaded else {},
        },
        "text": lane.text,
        "token_ids": lane.ids if run.unit == "token" else [],
        "phases_s": {phase.name: phase.seconds for phase in lane.phases.values()},
        "stopped_by": finished.reason if finished else None,
        "wall_s": finished.wall_s if finished else None,
        "clock": finished.clock if finished else None,
        "extra": finished.extra if finished else {},
        "repeats": [
            {"latency_s": values, "extra": lane.finishes[n].extra if n in lane.finishes else {}}
            for n, values in sorted(lane.repeats_s.items())
        ],
        "spoilers": run.spoilers(lane.name),
        "launch_bound": run.summary(lane.name).launch_bound,
        "marks": [
            {"kind": m.kind, "token": m.token, "t_s": m.t_s, "seconds": m.seconds, "text": m.text} for m in lane.marks
        ],
        "compile": _compiled(finished.compiled) if finished and finished.compiled else None,
        "summary": run.summary(lane.name)._asdict(),
    }  # fmt: skip


def _compiled(found: Compiled) -> dict[str, Any]:
    """What torch.compile did, with the seconds that artefacts saved."""
    recompiles = [{"guard": graph.guard, "seconds": graph.seconds} for graph in found.graphs if graph.guard]
    saved_s = found.cold_before_s - found.cold_s if found.cold_before_s else None
    return {
        "cold_s": found.cold_s, "graphs": len(found.graphs), "graph_s": [graph.seconds for graph in found.graphs],
        "graph_breaks": found.breaks, "recompiles": recompiles, "cudagraph_skips": found.skips,
        "cudagraph_records": found.records, "cache_hits": found.hits, "cache_misses": found.misses,
        "artefacts_loaded_bytes": found.loaded_bytes, "artefacts_saved_bytes": found.saved_bytes,
        "cold_before_s": found.cold_before_s or None, "saved_s": saved_s,
    }  # fmt: skip


def predicted_series(run: Run, models_dir: Any, plans: Any) -> dict[str, dict[str, list[int]]]:
    """The predicted KV bytes of every arm, one entry for each generated token, from the config alone.

    `plans`: arm name -> `rules.Checked`. Tokens of one step (speculation) have the bytes after it, as is measured.
    """
    facts = resolve(run.request.model, models_dir)
    series: dict[str, dict[str, list[int]]] = {}
    for name, lane in run.lanes.items():
        sizes: tuple[Any, ...] = ()
        if lane.started is not None and lane.t_s:
            started, checked = lane.started, plans[name]
            sizes = kv_series(
                facts, checked.plan.generate.cache, started.prompt_tokens, len(lane.t_s), started.batch_size,
                checked.itemsize, started.places,
            )  # fmt: skip
        ends = [bisect.bisect_right(lane.t_s, t_s) - 1 for t_s in lane.t_s]
        sizes = tuple(sizes[end] for end in ends) if sizes else sizes
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
        first = tiles(run.summary(name), run.memory_label, run.request.workload.batch_size, run.unit, lane.floor_note)
        figures[name] = [*first, *(run.details(name) if lane.finishes else [])]
    rows = list(dict.fromkeys((tile.key, tile.label) for name in names for tile in figures[name]))
    width = 26
    lines += ["", " " * _LEFT + "".join(f"{'arm ' + n:<{width}}" for n in names)]
    for key, label in rows:
        found = (next((t for t in figures[n] if t.key == key), Tile(key, label, "n/a", "")) for n in names)
        lines += _row(label, list(found), width)
    counts = [Tile("", "", str(len(lane.t_s)), "") for lane in run.lanes.values()]
    lines += _row("Tokens" if run.unit == "token" else "Forward passes", counts, width)
    compared = verdict(run.comparison(), run.unit)
    lines += ["", compared] if compared else []
    for name in names:
        lines += [f"Arm {name}: {said}" for said in [*named(run.summary(name), run.unit), *run.spoilers(name)]]
        lines += _marked(name, run.lanes[name], run.unit)
    for name in names:
        lines += ["", f"Arm {name}: requested -> planned -> effective"]
        for row in run.ledger(name):
            mark = {"proved": "proved", "fallback": "FELL BACK", "failed": "NOT IN EFFECT"}[row.status]
            steps = f"{row.requested} -> {row.planned} -> {row.effective}"
            lines.append(f"  {row.axis:<10} {steps}  [{mark}] {row.proof}")
            if row.reason:
                lines.append(f"             {row.reason}")
    texts = [plain(lane.text) for lane in run.lanes.values()]
    if run.unit == "forward":
        return "\n".join(lines)
    if len(texts) == 2 and texts[0] == texts[1]:
        lines += ["", "Both arms wrote the same text:", texts[0]]
    else:
        for name, text in zip(names, texts, strict=True):
            lines += ["", f"Text of arm {name}:", text]
    return "\n".join(lines)


def _marked(name: str, lane: Lane, unit: str) -> list[str]:
    """The first marks of an arm; all are in the document."""
    word = "token" if unit == "token" else "pass"
    points = mark_points(lane.marks)
    lines = [f"Arm {name}, {word} {point.token}: {plain(point.text)}" for point in points[:_MOST_MARKS]]
    more = len(points) - _MOST_MARKS
    return [*lines, *([f"Arm {name}: {more} more marks are in the JSON document"] if more > 0 else [])]


def _row(label: str, tiles: list[Tile], width: int) -> list[str]:
    """One figure of all arms; equal notes stand once, at the end of the line."""
    line = f"{label:<{_LEFT}}" + "".join(f"{(t.value + ' ' + t.unit).strip():<{width}}" for t in tiles)
    notes = [t.note for t in tiles]
    if len(set(notes)) == 1:
        return [(line + notes[0]).rstrip()]
    return [line.rstrip(), (" " * _LEFT + "".join(f"{note + ' ':<{width}}" for note in notes)).rstrip()]
