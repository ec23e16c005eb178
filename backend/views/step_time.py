"""Where the time of a step goes, in words: the parts of a traced step, each against the bytes that it must read.

A profiler slows what it traces, so a traced step is not a measured one. The parts add up to the measured time, by which
arms are compared. Where the traced step is longer, what a GPU waits for its host is shortened first, since it is the
host that a profiler slows, and what is still too long is scaled; where it is shorter, the rest is not explained. Either
is said.
"""

import math

import msgspec

from tokendyno.backend.counts import StepPart, StepTime
from tokendyno.backend.messages import Finished
from tokendyno.backend.runs.records import StepReads, Unit
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.units import bytes_text, plural, seconds_text
from tokendyno.backend.views.tiles import Tile, joined

_LABELS: dict[StepPart, str] = {
    "attention": "Attention",
    "products": "Weight products",
    "other": "Other kernels",
    "collectives": "Collectives",
    "gaps": "Gaps between launches",
    "host": "Host (GPU waits for it)",
}
_CPU_LABELS: dict[StepPart, str] = {"other": "Other operators", "host": "Host (between operators)"}
_ALWAYS: tuple[StepPart, ...] = ("attention", "products")
_LEAST_SHARE = 0.01
"""Share of the measured time below which a rest is not worth a part of its own."""


class PartText(msgspec.Struct, frozen=True):
    """One part of a step; `seconds` is None where it was fused with others. `reads`: the bytes that it must read and
    the time these need; `reads_s`: that time, None where it is unknown or the part reads nothing that is counted."""

    key: str
    label: str
    seconds: float | None
    text: str
    share: float
    reads: str = ""
    reads_s: float | None = None


class StepText(msgspec.Struct, frozen=True):
    """A step of an arm: `seconds` as measured, in parts as traced. `missing`: why there is no trace; then nothing else
    is known."""

    seconds: float = 0.0
    text: str = ""
    parts: list[PartText] = []
    said: str = ""
    missing: str = ""


def untraced(run: Snapshot, finished: Finished) -> str:
    """Why there is no trace of a step; "" where there is one, or nothing was recorded. A worker does not know whether
    it was not asked for one or a later repeat would have been traced."""
    if finished.no_step and not run.request.proof:
        return "tracing was switched off with the proof, as --no-proof does"
    return finished.no_step


def step_text(run: Snapshot, name: str) -> StepText | None:
    """The step of one arm; None while its trace may still come, or where the arm never ended."""
    arm = run.arms[name]
    if arm.finished is None or (arm.finished.step is None and not run.ended):
        return None
    step, why = arm.finished.step, untraced(run, arm.finished)
    if step is None or step.seconds <= 0:
        return StepText(missing=why or "this run was recorded before steps were traced for it")
    labels = _LABELS if step.gpu else _LABELS | _CPU_LABELS
    whole_s = run.summaries[name].latency_mean_s or step.seconds
    compiling_s = min(arm.compiling_s, whole_s)
    parts_s, scale = _measured_parts(step, whole_s - compiling_s)
    parts = [
        _part(part, labels[part], parts_s.get(part), whole_s, arm.predicted.reads)
        for part in labels
        if parts_s.get(part, 0.0) > 0 or part in _ALWAYS
    ]
    if compiling_s:
        took = f"{plural(len(arm.compiled), 'graph')} in the run, {joined(math.fsum(arm.compiled))}"
        parts.append(PartText("compiling", "Compiling", compiling_s, joined(compiling_s), compiling_s / whole_s, took))
    rest_s = whole_s - compiling_s - step.seconds
    if rest_s > _LEAST_SHARE * whole_s:
        why = "measured steps take longer than the traced ones"
        parts.append(PartText("unexplained", "Not explained", rest_s, joined(rest_s), rest_s / whole_s, why))
    return StepText(whole_s, joined(whole_s), parts, _basis(step, whole_s, compiling_s, scale, run.unit))


def step_tiles(step: StepText | None) -> list[Tile]:
    if step is None:
        return []
    if step.missing:
        return [Tile("step", "Where the time goes", "n/a", "", step.missing)]
    rows = [Tile("step", "Where the time goes", *seconds_text(step.seconds), step.said)]
    for part in step.parts:
        value, unit = seconds_text(part.seconds) if part.seconds is not None else ("n/a", "")
        unit += f", {100 * part.share:.0f}%" if unit else ""
        label = f"  {part.label[0].lower()}{part.label[1:]}"
        rows.append(Tile(f"step_{part.key}", label, value, unit, part.reads))
    return rows


def _measured_parts(step: StepTime, whole_s: float) -> tuple[dict[StepPart, float], float]:
    """(seconds of each part in a step of `whole_s` at most, what the time of a kernel was multiplied with)."""
    parts_s, excess_s = dict(step.parts_s), max(0.0, step.seconds - whole_s)
    waits: tuple[StepPart, ...] = ("host", "gaps") if step.gpu else ()
    for part in waits:
        shorter_s = min(excess_s, parts_s.get(part, 0.0))
        parts_s[part] = parts_s.get(part, 0.0) - shorter_s
        excess_s -= shorter_s
    scale = min(1.0, whole_s / sum(parts_s.values()))
    return {part: seconds * scale for part, seconds in parts_s.items()}, scale


def _part(part: StepPart, label: str, seconds: float | None, whole_s: float, reads: StepReads | None) -> PartText:
    size = {"attention": reads.kv_bytes, "products": reads.weight_bytes}.get(part, 0) if reads else 0
    note, reads_s = "", None
    if reads and size:
        note = f"must read {' '.join(bytes_text(size))} of {'KV cache' if part == 'attention' else 'weights'}"
        if reads.bytes_per_s:
            reads_s = size / reads.bytes_per_s
            note += f", {joined(reads_s)} at {reads.bytes_per_s / 1e9:,.4g} GB/s ({reads.source})"
    if seconds is None:
        note = "; ".join(filter(None, ["fused with other operators in compiled code", note]))
        return PartText(part, label, None, "n/a", 0.0, note, reads_s)
    return PartText(part, label, seconds, joined(seconds), seconds / whole_s, note, reads_s)


def _basis(step: StepTime, whole_s: float, compiling_s: float, scale: float, unit: Unit) -> str:
    """What the parts rest on: traced steps, how they became the measured time, and most of the part "other"."""
    what, each = ("steps", "token") if unit == "token" else ("passes", "forward pass")
    text, whole = f"{step.steps} traced {what} of {joined(step.seconds)}", joined(whole_s)
    whole += f" ({joined(compiling_s)} of it compiling)" if compiling_s else ""
    whole_s -= compiling_s
    if whole_s < step.seconds:
        text = f"the measured {whole} per {each}, split as {text} each under the profiler"
        text += ", which slows the host" if step.gpu else ""
    elif whole_s - step.seconds > _LEAST_SHARE * whole_s:
        text += f" leave the rest of the measured {whole} per {each} unexplained"
    if step.others:
        most = ", ".join(f"{name} {joined(took_s * scale)}" for name, took_s in list(_by_name(step).items())[:3])
        text += f"; most of other: {most}"
    return text


def _by_name(step: StepTime) -> dict[str, float]:
    """Seconds of what is in the part "other", the longest first, by names without C++ types, which only tell uses of a
    kernel apart."""
    seconds: dict[str, float] = {}
    for name, took_s in step.others.items():
        bare = name.replace("(anonymous namespace)::", "").removeprefix("void ").partition("<")[0].partition("(")[0]
        short = bare if bare == name else bare.rpartition("::")[2]  # aten::mul is an operator's whole name
        seconds[short] = seconds.get(short, 0.0) + took_s
    return dict(sorted(seconds.items(), key=lambda item: -item[1]))
