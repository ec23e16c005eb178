"""What a browser gets of a run: the columns past its cursor, and everything else in words when it changed.

Names on the wire are the keys that the panel's JavaScript reads; `rename` keeps them where a Python name is better.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from tokendyno.backend.evidence import Verdict
from tokendyno.backend.optimizations import titles_text
from tokendyno.backend.runs.arm_series import ArmSeries, Phase
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.quality import Gate, gate_of
from tokendyno.backend.runs.records import Status, Unit
from tokendyno.backend.runs.run import Columns, Run, Update
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.views.card import Card, SlideFigure, card_of, slide_figures
from tokendyno.backend.views.comparison import Difference, differences
from tokendyno.backend.views.details import detail_rows
from tokendyno.backend.views.ledger import (
    LedgerDigest,
    LedgerRow,
    ledger_digest,
    rows_of,
)
from tokendyno.backend.views.phases import PhaseBar, PhaseStep, phase_bar, phase_step
from tokendyno.backend.views.quality import QualityView, quality_view
from tokendyno.backend.views.sentences import (
    AnnotationText,
    annotations,
    code_words,
    diagnoses,
    interference_of,
    texts_sentence,
    whole_note,
)
from tokendyno.backend.views.start import Crossing, crossing, start_text
from tokendyno.backend.views.step_time import StepText, step_text
from tokendyno.backend.views.tiles import Tile, arm_tiles
from tokendyno.backend.views.verdict import VerdictText, unasked_sentence, verdict_of

LABELS: dict[Status, str] = {
    "queued": "queued",
    "running": "running",
    "done": "complete",
    "failed": "failed",
    "cancelled": "stopped",
    "interrupted": "interrupted",
}
_CLAUSE_END = re.compile(r" \(|[,;] | and |: (?=\w+ runs |over )|\.? *$")


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
    """What the page shows of an arm of any run, but its series. `state`: waiting, working, done, failed or
    cancelled."""

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
    """An arm that answers one prompt. `pace`: how the text grew; empty until the run has ended."""

    predicted: KvCurve | None
    prompt_tokens: int
    roofline: RooflineCurve | None = None
    annotations: list[AnnotationText] = []
    pace: Pace = Pace([], [])
    ranks: RankCurves | None = None
    step: StepText | None = None
    start: StepText | None = None


class RunOnPage(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows of any run, but its series. `quiet`: the browser shares the CPU with the measurement and
    should poll less often. `digest`: the ledgers of all arms in one line; None while there are none."""

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
    """A run of one prompt, or of given texts. `figures`: by chart, the one figure that a slide shows beside it."""

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


# --- one pull of many viewers -----------------------------------------------------------------------

FRESH_S = 1.0
"""How long a cached head is used: the verdict on an ended run also depends on later runs, such as a reading of texts
by its arms."""

H = TypeVar("H", bound=msgspec.Struct)
C = TypeVar("C")


class Heads(Generic[H]):
    """The newest head of each run that is in memory, for the many viewers who ask for it at about the same time: its
    version, the head, and when it was made (time.monotonic()). Any thread may ask."""

    def __init__(self) -> None:
        self._heads: WeakKeyDictionary[Run, tuple[int, H, float]] = WeakKeyDictionary()

    def get(self, run: Run) -> tuple[int | None, H | None]:
        """The version and the head of a run; None if there is none, or it is too old."""
        version, head, at_s = self._heads.get(run, (None, None, 0.0))
        return (version, head) if time.monotonic() < at_s + FRESH_S else (None, None)

    def keep(self, run: Run, version: int, head: H) -> None:
        self._heads[run] = (version, head, time.monotonic())


def pulled(
    run: Run,
    version: int,
    now_s: float,
    heads: Heads[H] | None,
    read: Callable[[int | None], Update[C]],
    make: Callable[[Snapshot, float], H],
) -> tuple[Update[C], H | None]:
    """What lies past a viewer's cursors, and the head where the viewer's version is not current. `read`: the run past
    the cursors, without a snapshot at the version of a head that is cached."""
    cached_version, head = heads.get(run) if heads else (None, None)
    past = read(cached_version)
    if past.snapshot is not None:
        made = make(past.snapshot, now_s)
        if heads:
            heads.keep(run, past.version, made)
        return past, made
    return past, msgspec.structs.replace(head, now_s=now_s) if head is not None and past.version != version else None


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
    return {"run": run.id, "status": past.status, "ended": past.ended, "version": past.version, "queue": queue}


def head_of(run: Snapshot, now_s: float, others: RunLog | None = None) -> Head:
    """A run at one moment. `now_s`: seconds since it was created; `others`: its texts may have been read by them."""
    reads = run.request.quality is not None
    gate = gate_of(run, others.reading if others and run.ended else None)
    arms = [_arm_head(run, name) for name in run.arms]
    card = None if reads else card_of(run, gate)
    return Head(
        **run_fields(run, now_s, arms, card, gate),
        max_new_tokens=run.request.workload.max_new_tokens,
        memory_label=run.memory_label,
        texts=texts_sentence(run.texts if run.ended else None),
        arms=arms,
        quality=quality_view(run, others.compared(run.created) if others and run.ended and reads else ""),
        crossing=crossing(run),
        figures=slide_figures(run, card),
    )


def run_fields(
    run: Snapshot, now_s: float, arms: Sequence[ArmOnPage], card: Card | None, gate: Gate | None = None
) -> dict[str, Any]:
    """The fields of a `RunOnPage` that do not depend on its kind."""
    created = run.created
    verdict = verdict_of(run, gate) if run.ended else VerdictText(unasked=unasked_sentence(run))
    return {
        "title": created.model_label,
        "note": whole_note(created),
        "created": created.created,
        "now_s": now_s,
        "message": pair_underway(run) or run.message,
        "quiet": created.device == "cpu",
        "unit": run.unit,
        "verdict": verdict,
        "differences": differences(run),
        "digest": ledger_digest({arm.name: arm.ledger for arm in arms}),
        "card": card,
        "heading": heading(created.model_label, run.status, verdict.sentence) if run.ended else "",
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
    arm = run.arms[name]
    return ArmHead(
        **arm_fields(run, name, diagnoses(run.summaries[name], run.unit)),
        predicted=_kv_curve(arm),
        prompt_tokens=arm.started.prompt_tokens if arm.started else 0,
        roofline=_roofline_curve(arm, run.unit, run.request.workload.max_new_tokens),
        annotations=annotations(arm.annotations),
        pace=Pace([t_s for t_s, _ in arm.pace], [size for _, size in arm.pace]) if run.ended else Pace([], []),
        ranks=_rank_curves(arm),
        step=step_text(run, name),
        start=start_text(run, name) if run.ended else None,
    )


def _phases_shown(arm: ArmSeries, ended: bool) -> list[Phase]:
    """After the end with the first run, whose tokens are drawn and whose text is raced, in the place of the last."""
    first = arm.first_phases.get("run")
    if first is None or not ended or arm.state not in ("done", "cancelled"):  # of one that failed, where it did
        return [*arm.phases.values()]
    return [*{**arm.phases, "run": first}.values()]


def arm_fields(run: Snapshot, name: str, remarks: Sequence[str] = ()) -> dict[str, Any]:
    """The fields of an `ArmOnPage` that do not depend on the kind of run. `remarks`: beside what the worker noted."""
    arm, planned, chosen = run.arms[name], run.planned(name), run.requested(name).choices
    return {
        "name": name,
        "label": titles_text({axis: choice for axis, choice in planned.requested.items() if axis in chosen}),
        "state": arm.state,
        "phases": [phase_step(phase, arm.expected_s) for phase in _phases_shown(arm, run.ended)],
        "verdicts": planned.verdicts,
        "notes": [*(arm.started.notes if arm.started else []), *remarks],
        "tiles": arm_tiles(run, name),
        "details": detail_rows(run, name),
        "ledger": rows_of(run, name),
        "interference": interference_of(run, name),
        "code": code_words(arm.finished),
    }


def _rank_curves(arm: ArmSeries) -> RankCurves | None:
    if arm.finished is None or not arm.finished.ranks:
        return None
    x, sizes = list[float | None](), list[int | None]()
    for rank in arm.finished.ranks[1:]:
        x += [*rank.sample_t_s, None]
        sizes += [*rank.sample_bytes, None]
    return RankCurves(x, sizes)


def _kv_curve(arm: ArmSeries) -> KvCurve | None:
    points = arm.predicted.kv
    if not points:
        return None
    parts = ([getattr(p, kind) for p in points] for kind in ("latent", "state", "index"))
    growing = [p.full - p.latent - p.state - p.index for p in points]
    return KvCurve([p.length for p in points], [p.sliding for p in points], growing, *parts)


def _roofline_curve(arm: ArmSeries, unit: Unit, max_steps: int) -> RooflineCurve | None:
    """Over the token's index: token i attends to the prompt and i tokens. All passes of an encoder are alike."""
    points = arm.predicted.roofline
    if not points or arm.started is None:
        return None
    if unit == "forward":
        return RooflineCurve([0, max(1, max_steps - 1)], [points[0].seconds] * 2)
    prompt = arm.started.prompt_tokens
    return RooflineCurve([p.length - prompt for p in points], [p.seconds for p in points], arm.predicted.exchanges)


# --- the heading ------------------------------------------------------------------------------------


def heading(model: str, status: Status, verdict: str) -> str:
    """The model, and the first clause of the verdict; without a verdict what became of the run."""
    return f"{model}: {first_clause(verdict) or LABELS[status]}"


def first_clause(sentence: str) -> str:
    """The first clause of a sentence, without intervals and whatever else follows."""
    return _CLAUSE_END.split(sentence, maxsplit=1)[0]
