"""The run log: append records, read by cursor.

Watching live, coming back after a reload, opening a permalink and exporting are the same read: fold the
records of a run into columns and hand out what lies past the reader's cursor. A `Run` is such a fold.
"""

import itertools
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from backend import figures, view
from backend.checks import Check, checks
from backend.marking import mark_points
from backend.messages import Evidence, Finished, Loaded, Mark, Progress, Samples, Started, Tokens
from backend.records import ArmEvent, Created, Ended, FloorPoint, Foretold, KvPoint, Record, Request, Status, Unit
from backend.statistics import Comparison, Measured, Summary, compare, summarize

MAX_TOKENS_A_PULL = 4_000
FIGURES_EVERY_S = 0.5
"""While tokens stream, figures are summed up anew no more often than this: of 16,000 tokens that takes 15 ms."""
KEPT_IN_MEMORY = 16


@dataclass(slots=True)
class Lane:
    """The series of one arm, in columns. Series are of repeat 0; `repeats_s` has the latencies of all, `finishes`
    their ends, `spoiling` their marks of the kinds that may spoil a figure."""

    name: str
    t_s: list[float] = field(default_factory=list)
    latency_s: list[float] = field(default_factory=list)
    kv_sliding: list[int] = field(default_factory=list)
    kv_full: list[int] = field(default_factory=list)
    memory_bytes: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    text: str = ""
    sample_t_s: list[float] = field(default_factory=list)
    sample_bytes: list[int] = field(default_factory=list)
    phases: dict[str, view.Phase] = field(default_factory=dict)
    predicted: list[KvPoint] = field(default_factory=list)
    floor: list[FloorPoint] = field(default_factory=list)
    floor_note: str = ""
    floor_work: str = ""
    foreseen: dict[str, int] = field(default_factory=dict)
    loaded: Loaded | None = None
    started: Started | None = None
    finished: Finished | None = None
    state: str = "waiting"
    repeats_s: dict[int, list[float]] = field(default_factory=dict)
    marks: list[Mark] = field(default_factory=list)
    finishes: dict[int, Finished] = field(default_factory=dict)
    spoiling: list[tuple[int, Mark]] = field(default_factory=list)

    def whole(self, repeat: int) -> bool:
        """Whether a repeat went to its end."""
        return repeat in self.finishes and self.finishes[repeat].reason != "cancelled"


class Run:
    """One run, folded from its records. Safe to append to from one thread and to read from others."""

    def __init__(self, created: Created) -> None:
        self.created = created
        self.status: Status = "queued"
        self.message = ""
        self.bad_input = False
        self.version = 1
        self.ended_at_s: float | None = None
        self.lanes = {arm.name: Lane(arm.name) for arm in created.arms}
        self.repeat = 0
        self._figures_at_s = -FIGURES_EVERY_S
        self._lock = threading.Lock()

    @property
    def id(self) -> str:
        return self.created.id

    @property
    def request(self) -> Request:
        return self.created.request

    @property
    def ended(self) -> bool:
        return self.status not in ("queued", "running")

    @property
    def memory_label(self) -> str:
        """What the memory series shows, on this run's device."""
        for lane in self.lanes.values():
            if lane.finished is not None:
                return lane.finished.memory_label
        return "VRAM of the worker" if self.created.device == "cuda" else "resident memory of the worker"

    def append(self, record: Record) -> None:
        """Fold one more record in."""
        with self._lock:
            match record:
                case Created():
                    raise ValueError("a run is created once")
                case ArmEvent(arm=arm):
                    if not self.ended:
                        self.status = "running"
                    self._fold(self.lanes[arm], record)
                case Foretold(arm=arm):
                    lane = self.lanes[arm]
                    lane.predicted, lane.floor, lane.floor_note = record.points, record.floor, record.floor_note
                    lane.floor_work, lane.foreseen = record.floor_work, record.memory
                    self.version += 1
                case Ended(at_s=at_s, status=status, message=message, bad_input=bad_input):
                    self.status, self.message, self.ended_at_s = status, message, at_s
                    self.bad_input = bad_input
                    for lane in self.lanes.values():
                        self._close(lane, status, at_s)
                    self.version += 1

    def _close(self, lane: Lane, status: Status, at_s: float) -> None:
        if lane.state == "working":
            lane.state = "failed" if status in ("failed", "interrupted") else status
        for phase in lane.phases.values():
            if phase.state != "end":
                phase.state, phase.seconds = "broken", max(phase.seconds, at_s - phase.begin_s)

    def _fold(self, lane: Lane, record: ArmEvent) -> None:
        event, self.repeat = record.event, record.repeat
        match event:
            case Tokens():
                lane.repeats_s.setdefault(record.repeat, []).extend(event.latency_s)
                if record.at_s - self._figures_at_s >= FIGURES_EVERY_S:
                    self._figures_at_s = record.at_s
                    self.version += 1
                if record.repeat > 0:
                    return
                if event.first != len(lane.t_s):
                    raise ValueError(f"tokens out of order: {event.first} after {len(lane.t_s)}")
                lane.t_s += event.t_s
                lane.latency_s += event.latency_s
                lane.kv_sliding += event.kv_sliding
                lane.kv_full += event.kv_full
                lane.memory_bytes += event.memory_bytes
                lane.ids += event.ids
                lane.text += event.text
            case Samples():
                if record.repeat == 0:
                    lane.sample_t_s += event.t_s
                    lane.sample_bytes += event.memory_bytes
            case Progress():
                lane.state = "working"
                begin_s = record.at_s - event.seconds
                if event.state == "begin" or event.phase not in lane.phases:
                    title = view.PHASE_TITLES[event.phase]
                    lane.phases[event.phase] = view.Phase(event.phase, title, event.state, begin_s, event.seconds)
                phase = lane.phases[event.phase]
                phase.state, phase.seconds = event.state, event.seconds
                phase.fraction, phase.note = event.fraction, event.note or phase.note
                self.version += 1
            case Mark():
                if record.repeat == 0:
                    lane.marks.append(event)
                if event.kind in ("throttle", "foreign"):
                    lane.spoiling.append((record.repeat, event))
                self.version += 1
            case Loaded():
                lane.loaded = event
            case Started():
                lane.state = "working"
                if record.repeat == 0:
                    lane.started = event
                self.version += 1
            case Finished():
                lane.state = "cancelled" if event.reason == "cancelled" else "done"
                lane.finishes[record.repeat] = event
                if record.repeat == 0:
                    lane.finished, lane.text = event, event.text
                self.version += 1
            case _:
                self.version += 1

    # --- reading ----------------------------------------------------------------------------------

    def summary(self, name: str) -> Summary:
        """The figures of one arm so far."""
        with self._lock:
            return self._summary(self.lanes[name])

    @property
    def unit(self) -> Unit:
        """What is timed one by one."""
        return self.created.unit

    def comparison(self) -> Comparison | None:
        """Arm A against arm B, over the repeats that both have ended; None for one arm alone."""
        with self._lock:
            return self._comparison()

    def _comparison(self) -> Comparison | None:
        if len(self.lanes) != 2:
            return None
        a, b = ({n: run for n, run in self._measured(lane).items() if lane.whole(n)} for lane in self.lanes.values())
        both = [n for n in a if n in b]
        return compare([a[n] for n in both], [b[n] for n in both], prefill=self.unit == "token")

    def spoilers(self, name: str) -> list[str]:
        """Sentences on what may have spoiled the figures of one arm."""
        with self._lock:
            lane = self.lanes[name]
            return self._spoilers(lane, self._summary(lane))

    def _spoilers(self, lane: Lane, summary: Summary) -> list[str]:
        measured_s = sum(end.wall_s for end in lane.finishes.values())
        return figures.spoilers(lane.spoiling, summary, measured_s, self.unit)

    def details(self, name: str) -> list[view.Tile]:
        """The figures behind the tiles of one arm."""
        with self._lock:
            lane = self.lanes[name]
            return self._details(lane, self._summary(lane))

    def _details(self, lane: Lane, summary: Summary) -> list[view.Tile]:
        extra = lane.finishes[max(lane.finishes)].extra if lane.finishes else {}
        phases_s = {phase.name: phase.seconds for phase in lane.phases.values()}
        rows = figures.details(summary, extra, phases_s, self.created.device, self.unit)
        rows += figures.load_rows(lane.loaded)
        rows.append(figures.floor(summary, lane.floor_work, lane.floor_note, self.unit))
        return rows + [check.tile() for check in self._checks(lane, summary)]

    def checks(self, name: str) -> list[Check]:
        """Predicted against measured memory of one arm."""
        with self._lock:
            lane = self.lanes[name]
            return self._checks(lane, self._summary(lane))

    def _checks(self, lane: Lane, summary: Summary) -> list[Check]:
        extra = lane.finished.extra if lane.finished else {}
        weights = lane.loaded.weight_bytes if lane.loaded else None
        kv = (summary.kv_predicted_bytes, summary.kv_bytes)
        return checks(lane.foreseen, weights, kv, summary.peak_memory_bytes or 0, self.memory_label, extra)

    def _measured(self, lane: Lane) -> dict[int, Measured]:
        ends = lane.finishes
        return {n: Measured(v, ends[n].extra if n in ends else {}) for n, v in sorted(lane.repeats_s.items())}

    def _summary(self, lane: Lane) -> Summary:
        kv = (lane.kv_sliding[-1], lane.kv_full[-1]) if lane.kv_full and self.unit == "token" else None
        memory = lane.sample_bytes + lane.memory_bytes
        if lane.finished is not None:
            memory.append(lane.finished.peak_memory_bytes)
        predicted = None
        if lane.predicted and kv is not None and lane.started is not None:
            at = kv_at(lane.predicted, lane.started.prompt_tokens + len(lane.t_s) - 1)
            predicted = round(at[0] + at[1])
        runs = list(self._measured(lane).values())
        batch_size = self.request.workload.batch_size
        prefill = self.unit == "token"
        return summarize(runs, batch_size, len(lane.t_s), memory, kv, predicted, prefill, self._floor_s(lane))

    def _floor_curve(self, lane: Lane) -> view.FloorCurve | None:
        """Over the token's index: token i attends to the prompt and i tokens. An encoder's passes are all alike."""
        if not lane.floor or lane.started is None:
            return None
        if self.unit == "forward":
            last = max(1, self.request.workload.max_new_tokens - 1)
            return view.FloorCurve([0, last], [lane.floor[0].seconds] * 2)
        prompt = lane.started.prompt_tokens
        return view.FloorCurve([p.length - prompt for p in lane.floor], [p.seconds for p in lane.floor])

    def _floor_s(self, lane: Lane) -> float | None:
        """Floor of the middle one of the tokens that were made after the first."""
        if not lane.floor or lane.started is None:
            return None
        return floor_at(lane.floor, lane.started.prompt_tokens + (len(lane.t_s) // 2 if self.unit == "token" else 0))

    def ledger(self, name: str) -> list[Evidence]:
        """The evidence of one arm: every axis that was found out, with what was asked and planned."""
        lane, arm = self.lanes[name], next(a for a in self.created.arms if a.name == name)
        if lane.finished is None:
            return []
        why = {v.axis: v.reason for v in arm.verdicts if v.level == "fallback"}
        return [
            Evidence(
                f.axis, arm.requested[f.axis], arm.planned[f.axis], f.effective, f.proof, why.get(f.axis, ""),
                f.axis in why,
            )
            for f in lane.finished.findings
            if f.axis in arm.requested
        ]  # fmt: skip

    def delta(self, version: int, cursors: Sequence[Sequence[int]], now_s: float) -> view.Delta:
        """What lies past `cursors` (tokens, samples, characters for each lane in order)."""
        with self._lock:
            lanes = []
            for lane, cursor in zip(self.lanes.values(), cursors, strict=False):
                n = len(lane.t_s)
                first = min(max(cursor[0], 0), n)
                end = min(n, first + MAX_TOKENS_A_PULL)
                ns = len(lane.sample_t_s)
                sfirst = min(max(cursor[1], 0), ns)
                nc = len(lane.text)
                cfirst = min(max(cursor[2], 0), nc)
                lanes.append(
                    view.LaneDelta(
                        first, end, lane.t_s[first:end], lane.latency_s[first:end],
                        lane.kv_sliding[first:end], lane.kv_full[first:end],
                        sfirst, ns, lane.sample_t_s[sfirst:], lane.sample_bytes[sfirst:],
                        cfirst, nc, lane.text[cfirst:],
                    )
                )  # fmt: skip
            done = self.ended and all(d.n == len(lane.t_s) for d, lane in zip(lanes, self.lanes.values(), strict=False))
            head = self._head(now_s) if version != self.version else None
            return view.Delta(self.id, self.status, done, self.version, head, lanes)

    def _head(self, now_s: float) -> view.Head:
        work, created = self.request.workload, self.created
        arms = []
        for arm in created.arms:
            lane = self.lanes[arm.name]
            rows = [
                view.LedgerRow(e.axis, e.requested, e.planned, e.effective, e.proof, e.status, e.reason)
                for e in self.ledger(arm.name)
            ]
            curve = None
            if lane.predicted:
                curve = view.Curve(
                    [p.length for p in lane.predicted],
                    [p.sliding for p in lane.predicted],
                    [p.full for p in lane.predicted],
                )
            summary = self._summary(lane)
            label = ", ".join(f"{k}={v}" for k, v in arm.requested.items() if lane_differs(created, arm.name, k))
            arms.append(
                view.ArmHead(
                    arm.name, label or "defaults", lane.state, list(lane.phases.values()), arm.verdicts, curve,
                    figures.tiles(summary, self.memory_label, work.batch_size, self.unit, lane.floor_note),
                    rows, lane.started.prompt_tokens if lane.started else 0,
                    (lane.started.notes if lane.started else []) + figures.named(summary, self.unit),
                    self._details(lane, summary) if lane.finishes else [], self._spoilers(lane, summary),
                    self._floor_curve(lane), mark_points(lane.marks),
                )
            )  # fmt: skip
        message = self.message
        if not self.ended and self.repeat:
            message = f"repeat {self.repeat + 1} of {work.repeats}"
        return view.Head(
            created.model_label, created.model_note, created.created, now_s, message, self.memory_label,
            created.device == "cpu", work.max_new_tokens, self.unit,
            figures.verdict(self._comparison() if self.ended else None, self.unit), arms,
        )  # fmt: skip


def lane_differs(created: Created, arm: str, axis: str) -> bool:
    """Whether an axis was set by the user in this arm."""
    asked = next(a for a in created.request.arms if a.name == arm)
    return axis in asked.choices


def kv_at(points: Sequence[KvPoint], length: int) -> tuple[float, float]:
    """Predicted (sliding, full) bytes at a length, between the corner points."""
    for a, b in itertools.pairwise(points):
        if a.length <= length <= b.length and b.length > a.length:
            f = (length - a.length) / (b.length - a.length)
            return a.sliding + f * (b.sliding - a.sliding), a.full + f * (b.full - a.full)
    nearest = min(points, key=lambda p: abs(p.length - length))
    return nearest.sliding, nearest.full


def floor_at(points: Sequence[FloorPoint], length: int) -> float:
    """Least seconds of the token that attends to `length` tokens, between the corner points."""
    for a, b in itertools.pairwise(points):
        if a.length <= length <= b.length and b.length > a.length:
            return a.seconds + (length - a.length) / (b.length - a.length) * (b.seconds - a.seconds)
    return min(points, key=lambda point: abs(point.length - length)).seconds


class Keeper(Protocol):
    """Where records outlive the process (`backend.store.Store`)."""

    def add(self, run_id: str, record: Record) -> None: ...
    def read(self, run_id: str) -> list[Record]: ...
    def newest(self) -> str | None: ...


class RunLog:
    """All runs: the live and latest ones in memory, every one in the store."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._lock = threading.Lock()

    def create(self, created: Created) -> Run:
        """Begin a run."""
        run = Run(created)
        self._keeper.add(created.id, created)
        self._remember(run)
        return run

    def append(self, run_id: str, record: Record) -> None:
        """Add a record to a live run."""
        self._keeper.add(run_id, record)
        run = self.get(run_id)
        if run is None:
            raise KeyError(run_id)
        run.append(record)

    def get(self, run_id: str) -> Run | None:
        """A run by id, read back from the store if it is no longer in memory; None if there is none."""
        with self._lock:
            run = self._runs.get(run_id)
            if run is not None:
                self._runs.move_to_end(run_id)
                return run
        records = self._keeper.read(run_id)
        if not records or not isinstance(records[0], Created):
            return None
        run = Run(records[0])
        for record in records[1:]:
            run.append(record)
        if run.ended:  # another process's live run is read anew each time: it grows without us
            self._remember(run)
        return run

    def newest(self) -> str | None:
        """Id of the run at work, else of the first that waits, else of the one created last."""
        with self._lock:
            live = [r for r in self._runs.values() if not r.ended]
            if live:
                return min(live, key=lambda run: run.created.created).id
        return self._keeper.newest()

    def _remember(self, run: Run) -> None:
        with self._lock:
            self._runs[run.id] = run
            ended = [r.id for r in self._runs.values() if r.ended and r.id != run.id]
            for run_id in ended[: max(0, len(self._runs) - KEPT_IN_MEMORY)]:
                del self._runs[run_id]
