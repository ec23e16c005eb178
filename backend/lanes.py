"""One arm of a run, folded from its events into columns."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from backend import view
from backend.messages import Finished, Loaded, Mark, Progress, Samples, Started, Tokens
from backend.records import ArmEvent, FloorPoint, KvPoint, Status, Unit
from backend.statistics import Measured

P = TypeVar("P", KvPoint, FloorPoint)


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

    def take(self, record: ArmEvent) -> None:
        """Fold one more event in."""
        event, first = record.event, record.repeat == 0
        match event:
            case Tokens():
                self.repeats_s.setdefault(record.repeat, []).extend(event.latency_s)
                if first:
                    self._take_tokens(event)
            case Samples() if first:
                self.sample_t_s += event.t_s
                self.sample_bytes += event.memory_bytes
            case Progress():
                self._take_progress(event, record.at_s)
            case Mark():
                if first:
                    self.marks.append(event)
                if event.kind in ("throttle", "foreign"):
                    self.spoiling.append((record.repeat, event))
            case Loaded():
                self.loaded = event
            case Started():
                self.state = "working"
                if first:
                    self.started = event
            case Finished():
                self.state = "cancelled" if event.reason == "cancelled" else "done"
                self.finishes[record.repeat] = event
                if first:
                    self.finished, self.text = event, event.text
                elif event.findings and self.finished is not None:  # proofs come with the last repeat
                    self.finished = msgspec.structs.replace(
                        self.finished, findings=event.findings, extra=event.extra | self.finished.extra
                    )
            case _:
                pass

    def _take_tokens(self, event: Tokens) -> None:
        if event.first != len(self.t_s):
            raise ValueError(f"tokens out of order: {event.first} after {len(self.t_s)}")
        self.t_s += event.t_s
        self.latency_s += event.latency_s
        self.kv_sliding += event.kv_sliding
        self.kv_full += event.kv_full
        self.memory_bytes += event.memory_bytes
        self.ids += event.ids
        self.text += event.text

    def _take_progress(self, event: Progress, at_s: float) -> None:
        self.state = "working"
        if event.state == "begin" or event.phase not in self.phases:
            title, begin_s = view.PHASE_TITLES[event.phase], at_s - event.seconds
            self.phases[event.phase] = view.Phase(event.phase, title, event.state, begin_s, event.seconds)
        phase = self.phases[event.phase]
        phase.state, phase.seconds = event.state, event.seconds
        phase.fraction, phase.note = event.fraction, event.note or phase.note

    def close(self, status: Status, at_s: float) -> None:
        """The run has ended: what was under way is broken off."""
        if self.state == "working":
            self.state = "failed" if status in ("failed", "interrupted") else status
        for phase in self.phases.values():
            if phase.state != "end":
                phase.state, phase.seconds = "broken", max(phase.seconds, at_s - phase.begin_s)

    # --- reading ----------------------------------------------------------------------------------

    def whole(self, repeat: int) -> bool:
        """Whether a repeat went to its end."""
        return repeat in self.finishes and self.finishes[repeat].reason != "cancelled"

    def measured(self) -> dict[int, Measured]:
        """What the statistics need of each repeat."""
        ends = self.finishes
        return {n: Measured(v, ends[n].extra if n in ends else {}) for n, v in sorted(self.repeats_s.items())}

    def kv_foretold(self) -> int | None:
        """Predicted KV bytes after the newest token."""
        if not self.predicted or self.started is None:
            return None
        return round(sum(kv_at(self.predicted, self.started.prompt_tokens + len(self.t_s) - 1)))

    def floor_s(self, unit: Unit) -> float | None:
        """Floor of the middle one of the tokens that were made after the first."""
        if not self.floor or self.started is None:
            return None
        return floor_at(self.floor, self.started.prompt_tokens + (len(self.t_s) // 2 if unit == "token" else 0))

    def floor_curve(self, unit: Unit, most: int) -> view.FloorCurve | None:
        """Over the token's index: token i attends to the prompt and i tokens. An encoder's passes are all alike."""
        if not self.floor or self.started is None:
            return None
        if unit == "forward":
            return view.FloorCurve([0, max(1, most - 1)], [self.floor[0].seconds] * 2)
        prompt = self.started.prompt_tokens
        return view.FloorCurve([p.length - prompt for p in self.floor], [p.seconds for p in self.floor])


def kv_at(points: Sequence[KvPoint], length: int) -> tuple[float, float]:
    """Predicted (sliding, full) bytes at a length, between the corner points."""
    return _between(points, length, lambda p: p.sliding), _between(points, length, lambda p: p.full)


def floor_at(points: Sequence[FloorPoint], length: int) -> float:
    """Least seconds of the token that attends to `length` tokens, between the corner points."""
    return _between(points, length, lambda p: p.seconds)


def _between(points: Sequence[P], length: int, value: Callable[[P], float]) -> float:
    """The value at a length, straight between two corners; beyond them the nearest one's."""
    for a, b in itertools.pairwise(points):
        if a.length <= length <= b.length and b.length > a.length:
            return value(a) + (length - a.length) / (b.length - a.length) * (value(b) - value(a))
    return value(min(points, key=lambda point: abs(point.length - length)))
