"""A run: append records, read by cursor.

Watching live, coming back after a reload, opening a permalink and exporting are the same read: fold the
records of a run into columns and hand out what lies past the reader's cursor. A `Run` is such a fold.
"""

import threading
from collections.abc import Sequence

from backend import figures, view
from backend.checks import Check, checks
from backend.lanes import Lane
from backend.marking import mark_points
from backend.messages import Evidence, Loaded, Samples, Tokens
from backend.records import ArmEvent, Created, Ended, Foretold, Record, Request, Status, Unit
from backend.statistics import Comparison, Summary, compare, summarize

MAX_TOKENS_A_PULL = 4_000
FIGURES_EVERY_S = 0.5
"""While tokens stream, figures are summed up anew no more often than this: of 16,000 tokens that takes 6 ms."""


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
                        lane.close(status, at_s)
                    self.version += 1

    def _fold(self, lane: Lane, record: ArmEvent) -> None:
        self.repeat = record.repeat
        if isinstance(record.event, Tokens):
            if record.at_s - self._figures_at_s >= FIGURES_EVERY_S:
                self._figures_at_s = record.at_s
                self.version += 1
        elif not isinstance(record.event, Samples | Loaded):
            self.version += 1
        lane.take(record)

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
        a, b = ({n: run for n, run in lane.measured().items() if lane.whole(n)} for lane in self.lanes.values())
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
        rows = figures.details(summary, extra, phases_s, self.created.device, self.unit, self.memory_label)
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

    def _summary(self, lane: Lane) -> Summary:
        kv = (lane.kv_sliding[-1], lane.kv_full[-1]) if lane.kv_full and self.unit == "token" else None
        memory = lane.sample_bytes + lane.memory_bytes
        if lane.finished is not None:
            memory.append(lane.finished.peak_memory_bytes)
        return summarize(
            list(lane.measured().values()), self.request.workload.batch_size, len(lane.t_s), memory, kv,
            lane.kv_foretold() if kv is not None else None, self.unit == "token", lane.floor_s(self.unit),
        )  # fmt: skip

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
                    lane.floor_curve(self.unit, work.max_new_tokens), mark_points(lane.marks),
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
