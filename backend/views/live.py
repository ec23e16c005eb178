"""What a browser gets of a run: the columns past its cursor, and everything else in words when it changed.

Names on the wire are the keys that the panel's JavaScript reads; `rename` keeps them where a Python name is better.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tokendyno.backend.evidence import Verdict
from tokendyno.backend.messages import PhaseName
from tokendyno.backend.optimizations import titles_text
from tokendyno.backend.runs.arm_series import ArmSeries, Phase
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.quality import Gate, gate_of
from tokendyno.backend.runs.records import Status, Unit
from tokendyno.backend.runs.run import Columns, Run, Update
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.units import bytes_text
from tokendyno.backend.views.arm_names import capitalized
from tokendyno.backend.views.card import Card, card_of
from tokendyno.backend.views.details import detail_rows
from tokendyno.backend.views.differences import Difference, differences
from tokendyno.backend.views.files import code_words
from tokendyno.backend.views.heads import Heads, pulled
from tokendyno.backend.views.ledger import LedgerDigest, LedgerRow, ledger_digest, ledger_summary, prompt_rows
from tokendyno.backend.views.phase_bar import PhaseBar, phase_bar, wait_text
from tokendyno.backend.views.quality import QualityView, quality_view
from tokendyno.backend.views.sentences import (
    AnnotationText,
    annotations,
    diagnoses,
    interference_of,
    texts_sentence,
    whole_note,
)
from tokendyno.backend.views.start import Crossing, crossing, start_text
from tokendyno.backend.views.step_time import StepText, step_text
from tokendyno.backend.views.tiles import PHASE_TITLES, Tile, joined, step_word, tiles
from tokendyno.backend.views.verdict import (
    SAME_BYTES,
    VerdictText,
    bytes_of,
    less_or_more,
    memory_noise,
    unasked_sentence,
    verdict_of,
)

LABELS: dict[Status, str] = {
    "queued": "queued",
    "running": "running",
    "done": "complete",
    "failed": "failed",
    "cancelled": "stopped",
    "interrupted": "interrupted",
}
_CLAUSE_END = re.compile(r" \(|[,;] | and |: (?=\w+ runs |over )|\.? *$")


class PhaseStep(msgspec.Struct, frozen=True):
    """One phase of an arm, with its title. `begin_s`: seconds since the run was created.

    wait        what to expect of it, in words
    expected_s  how long it took the last time, for the bar
    """

    name: PhaseName
    title: str
    state: str
    begin_s: float
    seconds: float
    fraction: float | None = None
    note: str = ""
    wait: str = ""
    expected_s: float | None = None


class KvCurve(msgspec.Struct, frozen=True):
    """Predicted KV bytes over sequence length, as corner points."""

    x: list[int]
    window: list[int]
    growing: list[int]
    latent: list[int]
    state: list[int]
    index: list[int]


class RooflineCurve(msgspec.Struct, frozen=True):
    """Roofline bound in seconds over the token's index, as corner points. `exchanges`: whether what several ranks
    exchange is in it, "" where there is one."""

    x: list[int]
    s: list[float]
    exchanges: str = ""


class RankCurves(msgspec.Struct, frozen=True):
    """Memory of the ranks or devices after the first, one after the other with a gap (None) between them: seconds since
    the run began, and bytes."""

    x: list[float | None]
    bytes: list[int | None]


class Pace(msgspec.Struct, frozen=True):
    """Characters of the text at some seconds after the run began, in order of time."""

    t: list[float]
    n: list[int]


class ArmOnPage(msgspec.Struct, frozen=True, kw_only=True, rename={"interference": "spoilers"}):
    """What the page shows of an arm of any run, but its series.

    state         waiting, working, done, failed or cancelled
    interference  sentences: what may have disturbed the measurement
    code          how much generated code of its graphs was kept, in words
    """

    name: str
    label: str
    state: str
    phases: list[PhaseStep]
    verdicts: list[Verdict]
    tiles: list[Tile]
    details: list[Tile]
    ledger: list[LedgerRow]
    notes: list[str]
    interference: list[str]
    code: str = ""


class ArmHead(ArmOnPage, frozen=True, kw_only=True, rename={"roofline": "floor", "annotations": "marks"}):
    """An arm that answers one prompt.

    pace   how the text grew; empty until the run has ended
    ranks  memory of the other ranks or devices, where several ran the model, once they are done
    """

    predicted: KvCurve | None
    verified: str
    prompt_tokens: int
    roofline: RooflineCurve | None = None
    annotations: list[AnnotationText] = []
    pace: Pace = Pace([], [])
    ranks: RankCurves | None = None
    step: StepText | None = None
    start: StepText | None = None


class SlideFigure(msgspec.Struct, frozen=True):
    """A figure inside its sentence: `lead` before it, `tail` behind it."""

    lead: str
    figure: str
    tail: str


class RunOnPage(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows of any run, but its series.

    quiet   the browser shares the CPU with the measurement and should poll less often
    digest  the ledgers of all arms in one line; None while there are none
    """

    title: str
    note: str
    created: float
    now_s: float
    message: str
    quiet: bool
    unit: Unit
    max_new_tokens: int
    verdict: VerdictText
    differences: Mapping[str, Difference]
    digest: LedgerDigest | None
    card: Card | None = None
    heading: str = ""
    bar: PhaseBar | None = None


class Head(RunOnPage, frozen=True, kw_only=True):
    """A run of one prompt, or of given texts.

    quality  what was read of given texts; None where the arms answered a prompt
    figures  by chart, the one figure that a slide shows beside it
    """

    memory_label: str
    texts: str
    arms: list[ArmHead]
    quality: QualityView | None = None
    crossing: Crossing | None = None
    figures: dict[str, SlideFigure] = {}


class Pulled(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one pull. `every_ms`: no sooner than this after this pull should the next one come."""

    run: str
    status: Status
    ended: bool
    version: int
    queue: str = ""
    trouble: str = ""
    every_ms: int = 0


class Delta(Pulled, frozen=True, kw_only=True, rename={"columns": "lanes"}):
    """Of a run of one prompt, or of given texts."""

    head: Head | None
    columns: list[Columns]


def delta(
    run: Run,
    version: int,
    cursors: Sequence[Sequence[int]],
    now_s: float,
    queue: str = "",
    others: RunLog | None = None,
    heads: Heads[Head] | None = None,
) -> Delta:
    """What lies past a viewer's version and `cursors`: (tokens, samples, characters) of each arm."""

    def make(now: Snapshot, now_s: float) -> Head:
        return head_of(now, now_s, others)

    past, head = pulled(run, version, now_s, heads, lambda cached: run.past(version, cursors, cached), make)
    return Delta(**pull_fields(run, past, queue), head=head, columns=past.columns)


def pull_fields(run: Run, past: Update[Any], queue: str) -> dict[str, Any]:
    """The fields that answers of any run have in common."""
    return {"run": run.id, "status": past.status, "ended": past.ended, "version": past.version, "queue": queue}


def head_of(run: Snapshot, now_s: float, others: RunLog | None = None) -> Head:
    """A run at one moment. `now_s`: seconds since it was created; `others`: its texts may have been read by them."""
    reads = run.request.quality is not None
    gate = gate_of(run, others.reading if others and run.ended else None)
    arms = [_arm_head(run, name) for name in run.arms]
    card = None if reads else card_of(run, gate)
    return Head(
        **run_fields(run, now_s, arms, verdict_of(run, gate) if run.ended else None, card, gate),
        max_new_tokens=run.request.workload.max_new_tokens,
        differences=differences(run),
        memory_label=run.memory_label,
        texts=texts_sentence(run.texts() if run.ended else None),
        arms=arms,
        quality=quality_view(run, others.compared(run.created) if others and run.ended and reads else ""),
        crossing=crossing(run),
        figures=slide_figures(run, card),
    )


def run_fields(
    run: Snapshot,
    now_s: float,
    arms: Sequence[ArmOnPage],
    verdict: VerdictText | None,
    card: Card | None,
    gate: Gate | None = None,
) -> dict[str, Any]:
    """The fields of a `RunOnPage` that do not depend on its kind. `verdict`: None before the run has ended."""
    created, said = run.created, verdict or VerdictText(unasked=unasked_sentence(run))
    return {
        "title": created.model_label,
        "note": whole_note(created),
        "created": created.created,
        "now_s": now_s,
        "message": pair_underway(run) or run.message,
        "quiet": created.device == "cpu",
        "unit": run.unit,
        "verdict": said,
        "digest": ledger_digest({arm.name: arm.ledger for arm in arms}),
        "card": card,
        "heading": heading(created.model_label, run.status, said.sentence) if run.ended else "",
        "bar": phase_bar(run, now_s, gate),
    }


def pair_underway(run: Snapshot) -> str:
    """Which pair of runs is under way, from the second one on; "" else."""
    if run.ended or not run.repeat:
        return ""
    repeats = run.request.workload.repeats
    most = f", at most {repeats}" if run.request.until_s else f" of {repeats}"
    return f"{'pair' if len(run.arms) == 2 else 'repeat'} {run.repeat + 1}{most}"


def _arm_head(run: Snapshot, name: str) -> ArmHead:
    arm, summary, work = run.arms[name], run.summary(name), run.request.workload
    rows = prompt_rows(run.ledger(name))
    return ArmHead(
        **arm_fields(run, name, diagnoses(summary, run.unit)),
        predicted=_kv_curve(arm),
        tiles=tiles(summary, run.memory_label, work.batch_size, run.unit, arm.roofline_note, arm.prefill),
        ledger=rows,
        verified=ledger_summary(rows) if rows else "",
        prompt_tokens=arm.started.prompt_tokens if arm.started else 0,
        details=detail_rows(run, name) if arm.finishes else [],
        roofline=_roofline_curve(arm, run.unit, work.max_new_tokens),
        annotations=annotations(arm.annotations),
        pace=Pace([t_s for t_s, _ in arm.pace], [size for _, size in arm.pace]) if run.ended else Pace([], []),
        ranks=_rank_curves(arm),
        step=step_text(run, name),
        start=start_text(run, name) if run.ended else None,
    )


def arm_fields(run: Snapshot, name: str, remarks: Sequence[str] = ()) -> dict[str, Any]:
    """The fields of an `ArmOnPage` that do not depend on the kind of run. `remarks`: beside what the worker noted."""
    arm, planned, chosen = run.arms[name], run.planned(name), run.requested(name).choices
    return {
        "name": name,
        "label": titles_text({axis: choice for axis, choice in planned.requested.items() if axis in chosen}),
        "state": arm.state,
        "phases": [phase_step(phase, arm.expected_s) for phase in arm.phases.values()],
        "verdicts": planned.verdicts,
        "notes": [*(arm.started.notes if arm.started else []), *remarks],
        "interference": interference_of(run, name),
        "code": code_words(arm.finished),
    }


def phase_step(phase: Phase, expected_s: Mapping[PhaseName, float]) -> PhaseStep:
    """A phase with its title, and what to expect of it."""
    return PhaseStep(
        phase.name,
        PHASE_TITLES[phase.name],
        phase.state,
        phase.begin_s,
        phase.seconds,
        phase.fraction,
        phase.note,
        wait_text(phase, expected_s),
        expected_s.get(phase.name),
    )


def _rank_curves(arm: ArmSeries) -> RankCurves | None:
    if arm.finished is None or not arm.finished.ranks:
        return None
    x, sizes = list[float | None](), list[int | None]()
    for rank in arm.finished.ranks[1:]:
        x += [*rank.sample_t_s, None]
        sizes += [*rank.sample_bytes, None]
    return RankCurves(x, sizes)


def _kv_curve(arm: ArmSeries) -> KvCurve | None:
    if not arm.predicted_kv:
        return None
    points = arm.predicted_kv
    parts = ([getattr(p, kind) for p in points] for kind in ("latent", "state", "index"))
    growing = [p.full - p.latent - p.state - p.index for p in points]
    return KvCurve([p.length for p in points], [p.sliding for p in points], growing, *parts)


def _roofline_curve(arm: ArmSeries, unit: Unit, max_steps: int) -> RooflineCurve | None:
    """Over the token's index: token i attends to the prompt and i tokens. All passes of an encoder are alike."""
    if not arm.roofline or arm.started is None:
        return None
    if unit == "forward":
        return RooflineCurve([0, max(1, max_steps - 1)], [arm.roofline[0].seconds] * 2)
    prompt = arm.started.prompt_tokens
    x, seconds = [p.length - prompt for p in arm.roofline], [p.seconds for p in arm.roofline]
    return RooflineCurve(x, seconds, arm.exchanges)


# --- the figure of a slide, the heading -------------------------------------------------------------


def slide_figures(run: Snapshot, card: Card | None) -> dict[str, SlideFigure]:
    """By the key of a chart; of memory and KV cache only where they differ."""
    if card is None:
        name = next(iter(run.arms))
        one, alone = run.summary(name), dict[str, SlideFigure]()
        if one.latency_mean_s is not None:
            alone["latency"] = SlideFigure("", joined(one.latency_mean_s), f"a {step_word(run.unit)} in arm {name}")
        if one.kv_bytes:
            size, unit = bytes_text(one.kv_bytes)
            alone["kv"] = SlideFigure("", size, f"{unit} of KV cache in arm {name}")
        return alone
    found = {"latency": SlideFigure(card.lead, card.figure, card.tail)}
    a, b = (run.summary(name) for name in run.arms)
    sizes = {
        "memory": ("memory", bytes_of([a.peak_memory_bytes, b.peak_memory_bytes], memory_noise(run))),
        "kv": ("KV cache", bytes_of([a.kv_bytes, b.kv_bytes], SAME_BYTES)),
    }
    for key, (what, pair) in sizes.items():
        change = 0.0 if pair is None or run.equal_arms else pair.change("B")
        if pair is None or not change:
            continue
        smaller, larger = ("B", "A") if change < 0 else ("A", "B")
        share, _, less = less_or_more(pair.change(smaller)).partition(" ")
        lead = capitalized(f"{card.names[smaller]} takes")
        found[key] = SlideFigure(lead, share, f"{less} {what} than {card.names[larger]}")
    return found


def heading(model: str, status: Status, verdict: str) -> str:
    """The model, and the first clause of the verdict; without a verdict what became of the run."""
    return f"{model}: {first_clause(verdict) or LABELS[status]}"


def first_clause(sentence: str) -> str:
    """What a sentence says first: intervals, and what else was had, come later in it."""
    return _CLAUSE_END.split(sentence, maxsplit=1)[0]
