"""What a browser gets of a run: the columns past its cursor, and everything else in words when it changed.

Names on the wire are the keys that the panel's JavaScript reads; `rename` keeps them where a Python name is better.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from tokendyno.backend.evidence import Verdict
from tokendyno.backend.messages import PhaseName
from tokendyno.backend.optimizations import titles_text
from tokendyno.backend.runs.arm_series import ArmSeries, Phase
from tokendyno.backend.runs.gate import Found, Gate, gate_of
from tokendyno.backend.runs.records import Created, Status, Unit
from tokendyno.backend.runs.run import Columns, Run
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.views.arm_details import detail_rows
from tokendyno.backend.views.card import Card, card_of
from tokendyno.backend.views.differences import Difference, differences
from tokendyno.backend.views.generated_code import code_words
from tokendyno.backend.views.heading import heading
from tokendyno.backend.views.heads import Heads
from tokendyno.backend.views.ledger import LedgerDigest, LedgerRow, ledger_digest, ledger_summary, prompt_rows
from tokendyno.backend.views.origin import whole_note
from tokendyno.backend.views.phase_bar import PhaseBar, phase_bar
from tokendyno.backend.views.quality import QualityView, quality_sentence, quality_view, tolerances
from tokendyno.backend.views.sentences import (
    AnnotationText,
    annotations,
    diagnoses,
    interference_of,
    texts_sentence,
)
from tokendyno.backend.views.slide import SlideFigure, slide_figures
from tokendyno.backend.views.start import Crossing, crossing, start_text
from tokendyno.backend.views.step_time import StepText, step_text
from tokendyno.backend.views.tile import Tile
from tokendyno.backend.views.tiles import PHASE_TITLES, tiles
from tokendyno.backend.views.verdict import VerdictText, unasked_sentence, verdict_of
from tokendyno.backend.views.waits import wait_text


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


class ArmHead(
    msgspec.Struct, frozen=True, rename={"interference": "spoilers", "roofline": "floor", "annotations": "marks"}
):
    """Everything about an arm but its series.

    state         waiting, working, done, failed or cancelled
    interference  sentences: what may have disturbed the measurement
    pace          how the text grew; empty until the run has ended
    ranks         memory of the other ranks or devices, where several ran the model, once they are done
    code          how much generated code of its graphs was kept, in words
    """

    name: str
    label: str
    state: str
    phases: list[PhaseStep]
    verdicts: list[Verdict]
    predicted: KvCurve | None
    tiles: list[Tile]
    ledger: list[LedgerRow]
    verified: str
    prompt_tokens: int
    notes: list[str]
    details: list[Tile]
    interference: list[str]
    roofline: RooflineCurve | None = None
    annotations: list[AnnotationText] = []
    pace: Pace = Pace([], [])
    ranks: RankCurves | None = None
    step: StepText | None = None
    start: StepText | None = None
    code: str = ""


class Head(msgspec.Struct, frozen=True):
    """Everything about a run but its series.

    quiet       the browser shares the CPU with the measurement and should poll less often
    digest      the ledgers of all arms in one line; None while there are none
    quality     what was read of given texts; None where the arms answered a prompt
    figures     by chart, the one figure that a slide shows beside it
    """

    title: str
    note: str
    created: float
    now_s: float
    message: str
    memory_label: str
    quiet: bool
    max_new_tokens: int
    unit: Unit
    verdict: VerdictText
    texts: str
    differences: Mapping[str, Difference]
    digest: LedgerDigest | None
    arms: list[ArmHead]
    quality: QualityView | None = None
    crossing: Crossing | None = None
    card: Card | None = None
    heading: str = ""
    bar: PhaseBar | None = None
    figures: dict[str, SlideFigure] = {}


class Delta(msgspec.Struct, frozen=True, rename={"columns": "lanes"}):
    """The answer to one pull.

    every_ms  no sooner than this after this pull should the next one come
    """

    run: str
    status: Status
    ended: bool
    version: int
    head: Head | None
    columns: list[Columns]
    queue: str = ""
    trouble: str = ""
    every_ms: int = 0


class OtherRuns(Protocol):
    """What the view of a run needs of all others (`tokendyno.backend.runs.log.RunLog`)."""

    def reading(self, of: Created) -> Found | None: ...
    def compared(self, of: Created) -> str: ...


class NoOthers:
    """Where no other runs are known."""

    def reading(self, of: Created) -> Found | None:
        """None."""
        return None

    def compared(self, of: Created) -> str:
        """None."""
        return ""


NO_OTHERS = NoOthers()


def delta(
    run: Run,
    version: int,
    cursors: Sequence[Sequence[int]],
    now_s: float,
    queue: str = "",
    others: OtherRuns = NO_OTHERS,
    heads: Heads[Head] | None = None,
) -> Delta:
    """What lies past a viewer's version and `cursors`: (tokens, samples, characters) of each arm."""
    kept = heads.get(run) if heads else None
    past = run.past(version, cursors, kept.version if kept else None)
    head = None
    if past.snapshot is not None:
        head = head_of(past.snapshot, now_s, others)
        if heads:
            heads.keep(run, past.version, head)
    elif kept and past.version != version:
        head = msgspec.structs.replace(kept.head, now_s=now_s)
    return Delta(run.id, past.status, past.ended, past.version, head, past.columns, queue)


def head_of(run: Snapshot, now_s: float, others: OtherRuns = NO_OTHERS) -> Head:
    """A run at one moment. `now_s`: seconds since it was created."""
    work, created = run.request.workload, run.created
    message, note = pair_underway(run) or run.message, whole_note(created)
    gate = gate_of(run, others.reading if run.ended else NO_OTHERS.reading)
    arms = [_arm_head(run, name) for name in run.arms]
    card = card_of(run, gate) if run.request.quality is None else None
    verdict = _verdict(run, gate) if run.ended else VerdictText(unasked=unasked_sentence(run))
    return Head(
        created.model_label,
        note,
        created.created,
        now_s,
        message,
        run.memory_label,
        created.device == "cpu",
        work.max_new_tokens,
        run.unit,
        verdict,
        texts_sentence(run.texts() if run.ended else None),
        differences(run),
        ledger_digest({arm.name: arm.ledger for arm in arms}),
        arms,
        quality_view(run, others.compared(created) if run.ended and run.request.quality is not None else ""),
        crossing(run),
        card,
        heading(created.model_label, run.status, verdict.sentence) if run.ended else "",
        phase_bar(run, now_s, gate),
        slide_figures(run, card),
    )


def pair_underway(run: Snapshot) -> str:
    """Which pair of runs is under way, from the second one on; "" else."""
    if run.ended or not run.repeat:
        return ""
    repeats = run.request.workload.repeats
    most = f", at most {repeats}" if run.request.until_s else f" of {repeats}"
    return f"{'pair' if len(run.arms) == 2 else 'repeat'} {run.repeat + 1}{most}"


def _verdict(run: Snapshot, gate: Gate | None) -> VerdictText:
    """Of a reading, what B costs in quality; else which arm is faster."""
    if run.request.quality is None:
        return verdict_of(run, gate)
    return VerdictText(quality_sentence(run), tolerances(run), unasked=unasked_sentence(run))


def _arm_head(run: Snapshot, name: str) -> ArmHead:
    arm, planned, summary, work = run.arms[name], run.planned(name), run.summary(name), run.request.workload
    asked = run.asked(name).choices
    rows = prompt_rows(run.ledger(name))
    return ArmHead(
        name=name,
        label=titles_text({axis: choice for axis, choice in planned.requested.items() if axis in asked}),
        state=arm.state,
        phases=[phase_step(phase, arm.expected_s) for phase in arm.phases.values()],
        verdicts=planned.verdicts,
        predicted=_kv_curve(arm),
        tiles=tiles(summary, run.memory_label, work.batch_size, run.unit, arm.roofline_note, arm.prefill),
        ledger=rows,
        verified=ledger_summary(rows) if rows else "",
        prompt_tokens=arm.started.prompt_tokens if arm.started else 0,
        notes=(arm.started.notes if arm.started else []) + diagnoses(summary, run.unit),
        details=detail_rows(run, name, summary) if arm.finishes else [],
        interference=interference_of(run, name, summary),
        roofline=_roofline_curve(arm, run.unit, work.max_new_tokens),
        annotations=annotations(arm.annotations),
        pace=Pace([t_s for t_s, _ in arm.pace], [size for _, size in arm.pace]) if run.ended else Pace([], []),
        ranks=_rank_curves(arm),
        step=step_text(run, name, summary),
        start=start_text(run, name, summary) if run.ended else None,
        code=code_words(arm.finished),
    )


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
