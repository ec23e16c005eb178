"""Where the time of a step goes, in words: the parts of a traced step, each against the bytes that it must read.

A profiler slows what it listens to, so a traced step is no measured one. Parts add up to the measured time, by which
arms are compared: where the traced step is longer, its shares are taken of the measured time; where it is shorter, the
rest is not explained. Either is said.
"""

import msgspec

from tokendyno.backend.counts import StepPart, StepTime
from tokendyno.backend.runs.records import StepReads, Unit
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.units import bytes_text, seconds_text
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


def step_text(run: Snapshot, name: str) -> StepText | None:
    """The step of one arm; None while its trace may still come, or where the arm never ended."""
    arm = run.arms[name]
    if arm.finished is None or (arm.finished.step is None and not run.ended):
        return None
    step, why = arm.finished.step, arm.finished.no_step
    if step is None or step.seconds <= 0:
        return StepText(missing=why or "this run was recorded before steps were traced for it")
    labels = _LABELS if step.gpu else _LABELS | _CPU_LABELS
    whole_s = run.summary(name).latency_mean_s or step.seconds
    scale = min(1.0, whole_s / step.seconds)
    parts = [
        _part(part, labels[part], step, whole_s, scale, arm.reads)
        for part in labels
        if step.parts_s.get(part, 0.0) > 0 or part in _ALWAYS
    ]
    rest_s = whole_s - step.seconds
    if rest_s > _LEAST_SHARE * whole_s:
        said = "measured steps take longer than the traced ones"
        parts.append(PartText("unexplained", "Not explained", rest_s, joined(rest_s), rest_s / whole_s, said))
    return StepText(whole_s, joined(whole_s), parts, _said(step, whole_s, run.unit))


def step_tiles(found: StepText | None) -> list[Tile]:
    """A step and its parts as rows of a table."""
    if found is None:
        return []
    if found.missing:
        return [Tile("step", "Where the time goes", "n/a", "", found.missing)]
    rows = [Tile("step", "Where the time goes", *seconds_text(found.seconds), found.said)]
    for one in found.parts:
        value, unit = seconds_text(one.seconds) if one.seconds is not None else ("n/a", "")
        unit += f", {100 * one.share:.0f}%" if unit else ""
        label = f"  {one.label[0].lower()}{one.label[1:]}"
        rows.append(Tile(f"step_{one.key}", label, value, unit, one.reads))
    return rows


def _part(
    part: StepPart, label: str, step: StepTime, whole_s: float, scale: float, reads: StepReads | None
) -> PartText:
    """`scale`: of the traced time to the measured `whole_s`."""
    traced_s = step.parts_s.get(part)
    size = {"attention": reads.kv_bytes, "products": reads.weight_bytes}.get(part, 0) if reads else 0
    said, needed = "", None
    if reads and size:
        said = f"must read {' '.join(bytes_text(size))} of {'KV cache' if part == 'attention' else 'weights'}"
        if reads.bytes_per_s:
            needed = size / reads.bytes_per_s
            said += f", {joined(needed)} at {reads.bytes_per_s / 1e9:,.4g} GB/s ({reads.source})"
    if traced_s is None:
        said = "; ".join(filter(None, ["fused with other operators in compiled code", said]))
        return PartText(part, label, None, "n/a", 0.0, said, needed)
    seconds = traced_s * scale
    return PartText(part, label, seconds, joined(seconds), seconds / whole_s, said, needed)


def _said(step: StepTime, whole_s: float, unit: Unit) -> str:
    """On what the parts rest: traced steps, how they became the measured time, and the part "other"."""
    what, one = ("steps", "token") if unit == "token" else ("passes", "forward pass")
    traced, whole = (joined(seconds) for seconds in (step.seconds, whole_s))
    said = f"{step.steps} traced {what} of {traced}"
    if whole_s < step.seconds:
        said = f"the measured {whole} per {one}, split as {said} each under the profiler"
    elif whole_s - step.seconds > _LEAST_SHARE * whole_s:
        said += f" leave the rest of the measured {whole} per {one} unexplained"
    scale = min(1.0, whole_s / step.seconds)
    if step.others:
        most = ", ".join(f"{name} {joined(took * scale)}" for name, took in list(_by_name(step).items())[:3])
        said += f"; most of other: {most}"
    return said


def _by_name(step: StepTime) -> dict[str, float]:
    """Seconds of what is in the part "other", by name without C++ types, which tell the uses of one kernel apart."""
    found: dict[str, float] = {}
    for name, took in step.others.items():
        bare = name.replace("(anonymous namespace)::", "").removeprefix("void ").partition("<")[0].partition("(")[0]
        short = bare if bare == name else bare.rpartition("::")[2]  # aten::mul is an operator's whole name
        found[short] = found.get(short, 0.0) + took
    return dict(sorted(found.items(), key=lambda one: -one[1]))
