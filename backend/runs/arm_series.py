"""One arm of a run: its events folded into columns."""

import bisect
import copy
import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from tokendyno.backend.counts import RunCounts
from tokendyno.backend.messages import (
    Amount,
    Annotation,
    Finished,
    Loaded,
    PageMoves,
    PagesAllocated,
    PhaseName,
    Probed,
    Progress,
    Proved,
    RequestEnds,
    Samples,
    Scored,
    Started,
    Steps,
    Tokens,
    Waits,
)
from tokendyno.backend.predict.kv import KvPoint
from tokendyno.backend.runs.batch_series import BatchSeries
from tokendyno.backend.runs.records import ArmEvent, Predicted, RooflinePoint, Status, Unit
from tokendyno.backend.runs.summary import Measured

P = TypeVar("P", KvPoint, RooflinePoint)

INTERFERENCE = ("throttle", "foreign")
"""Kinds of annotation that may have distorted a measurement; the other kinds explain it."""


class Phase(msgspec.Struct):
    """One phase of an arm. `begin_s`: seconds since the run was created; `state` is "broken" if it never ended."""

    name: PhaseName
    state: str
    begin_s: float
    seconds: float
    fraction: float | None = None
    note: str = ""
    amount: Amount | None = None


@dataclass(slots=True)
class ArmSeries:
    """The columns of one arm. Token and sample series are those of repeat 0.

    repeats_s         latencies of every repeat: repeat -> seconds of each step
    compiled          seconds of each compilation during a step, over all repeats
    interference      (repeat, annotation) of the kinds in INTERFERENCE, over all repeats
    first_phases      those of repeat 0 and before it, and `first_loaded` the load; later ones may come again
    expected_whole_s  how long those that come again and again took, all together
    pace              (seconds, characters): how much of the text there was at a time, for each part of it that came
    batch             many requests, of repeat 0; empty for a run of one prompt
    """

    name: str
    t_s: list[float] = field(default_factory=list)
    latency_s: list[float] = field(default_factory=list)
    kv_sliding: list[int] = field(default_factory=list)
    kv_full: list[int] = field(default_factory=list)
    kv_latent: list[int] = field(default_factory=list)
    kv_state: list[int] = field(default_factory=list)
    kv_index: list[int] = field(default_factory=list)
    memory_bytes: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    text: str = ""
    pace: list[tuple[float, int]] = field(default_factory=list)
    sample_t_s: list[float] = field(default_factory=list)
    sample_bytes: list[int] = field(default_factory=list)
    phases: dict[PhaseName, Phase] = field(default_factory=dict)
    first_phases: dict[PhaseName, Phase] = field(default_factory=dict)
    predicted: Predicted = field(default_factory=lambda: Predicted("", []))
    expected_s: dict[PhaseName, float] = field(default_factory=dict)
    expected_whole_s: dict[PhaseName, float] = field(default_factory=dict)
    loaded: Loaded | None = None
    first_loaded: Loaded | None = None
    started: Started | None = None
    finished: Finished | None = None
    state: str = "waiting"
    repeats_s: dict[int, list[float]] = field(default_factory=dict)
    annotations: list[Annotation] = field(default_factory=list)
    finishes: dict[int, Finished] = field(default_factory=dict)
    compiled: list[float] = field(default_factory=list)
    interference: list[tuple[int, Annotation]] = field(default_factory=list)
    probed: Probed | None = None
    batch: BatchSeries = field(default_factory=BatchSeries)
    scores: list[Scored] = field(default_factory=list)

    # --- folding ----------------------------------------------------------------------------------

    def take(self, record: ArmEvent) -> None:
        """Fold in one more event. ValueError if its tokens do not continue the series."""
        event, first = record.event, record.repeat == 0
        match event:
            case Tokens():
                self.repeats_s.setdefault(record.repeat, []).extend(event.latency_s)
                if first:
                    self._take_tokens(event)
            case Steps() | Waits() | PageMoves() | PagesAllocated() | RequestEnds():
                if first:
                    self.batch.take(event)
            case Samples() if first:
                self.sample_t_s += event.t_s
                self.sample_bytes += event.memory_bytes
            case Progress():
                self._take_progress(event, record.at_s)
                if first and self.finished is None:
                    self.first_phases[event.phase] = self.phases[event.phase]
            case Annotation():
                if first:
                    self.annotations.append(event)
                if event.kind in ("compile", "recompile") and event.token and event.seconds:
                    self.compiled.append(event.seconds)
                if event.kind in INTERFERENCE:
                    self.interference.append((record.repeat, event))
            case Loaded():
                self.loaded = event
                self.first_loaded = self.first_loaded or event
            case Started():
                self.state = "working"
                if first:
                    self.started = event
            case Finished():
                self._take_finish(event, record.repeat)
            case Proved():
                self._take_proof(event)
            case Probed():
                self.probed = event
            case Scored():
                self.scores.append(event)
                self.state = "done"

    def _take_tokens(self, event: Tokens) -> None:
        if event.first != len(self.t_s):
            raise ValueError(f"tokens out of order: {event.first} after {len(self.t_s)}")
        self.t_s += event.t_s
        self.latency_s += event.latency_s
        self.kv_sliding += event.kv_sliding
        self.kv_full += event.kv_full
        self.kv_latent += event.kv_latent
        self.kv_state += event.kv_state
        self.kv_index += event.kv_index
        self.memory_bytes += event.memory_bytes
        self.ids += event.ids
        self.text += event.text
        if event.t_s and event.text:
            self.pace.append((event.t_s[-1], len(self.text)))

    def _take_progress(self, event: Progress, at_s: float) -> None:
        self.state = "working"
        if self.finished is not None and event.phase in ("compile", "warmup"):  # for texts that are read after the runs
            event = msgspec.structs.replace(event, phase="quality")
        if event.state == "begin" or event.phase not in self.phases:
            self.phases[event.phase] = Phase(event.phase, event.state, at_s - event.seconds, event.seconds)
        phase = self.phases[event.phase]
        phase.state, phase.seconds = event.state, event.seconds
        phase.fraction, phase.note = event.fraction, event.note or phase.note
        phase.amount = event.amount or phase.amount

    def _take_finish(self, event: Finished, repeat: int) -> None:
        self.state = "cancelled" if event.reason == "cancelled" else "done"
        self.finishes[repeat] = event
        if repeat == 0:
            self.finished, self.text = event, event.text
        elif event.findings:  # the last repeat brings the proofs
            self._take_proof(event)

    def _take_proof(self, event: Finished | Proved) -> None:
        if self.finished is not None:
            self.finished = msgspec.structs.replace(
                self.finished,
                findings=event.findings,
                extra=event.extra | self.finished.extra,
                step=event.step,
                no_step=event.no_step,
                code=event.code,
            )

    def close(self, status: Status, at_s: float) -> None:
        """The run has ended: mark whatever was still under way as broken off."""
        if self.state == "working":
            self.state = "failed" if status in ("failed", "interrupted") else status
        for phase in self.phases.values():
            if phase.state != "end":
                phase.state, phase.seconds = "broken", max(phase.seconds, at_s - phase.begin_s)

    # --- reading ----------------------------------------------------------------------------------

    @property
    def compiling_s(self) -> float:
        """Of a mean step what torch.compile took of it, in all repeats."""
        return math.fsum(self.compiled) / max(1, sum(max(0, len(each) - 1) for each in self.repeats_s.values()))

    def kv_growing(self, first: int, end: int) -> list[int]:
        """Bytes of plain keys and values without a window, after tokens `first` to `end`."""
        special = (column[first:end] for column in (self.kv_latent, self.kv_state, self.kv_index) if column)
        return [full - sum(of_these) for full, *of_these in zip(self.kv_full[first:end], *special, strict=True)]

    def copy(self) -> "ArmSeries":
        values = {column.name: _copied(getattr(self, column.name)) for column in dataclasses.fields(self)}
        return ArmSeries(**values)

    def completed(self, repeat: int) -> bool:
        return repeat in self.finishes and self.finishes[repeat].reason != "cancelled"

    @property
    def peak_memory_bytes(self) -> int | None:
        """Of the first run, as the worker measured it; None before its end."""
        return self.finished.peak_memory_bytes if self.finished is not None else None

    def measured(self) -> dict[int, Measured]:
        return {
            repeat: Measured(latencies_s, self.finishes[repeat].counts if repeat in self.finishes else RunCounts())
            for repeat, latencies_s in sorted(self.repeats_s.items())
        }

    def predicted_kv_bytes(self) -> int | None:
        """Predicted KV-cache bytes after the newest token."""
        if not self.predicted.kv or self.started is None:
            return None
        return round(sum(kv_at(self.predicted.kv, self.started.prompt_tokens + len(self.t_s) - 1)))

    def roofline_s(self, unit: Unit) -> float | None:
        """Least seconds of the middle token generated after the first, or of any pass of an encoder."""
        if not self.predicted.roofline or self.started is None:
            return None
        length = self.started.prompt_tokens + (len(self.t_s) // 2 if unit == "token" else 0)
        return _interpolate(self.predicted.roofline, length, lambda point: point.seconds)


def kv_at(points: Sequence[KvPoint], length: int) -> tuple[float, float]:
    """Predicted (sliding, full) KV bytes at a length, interpolated between corners."""
    return _interpolate(points, length, lambda p: p.sliding), _interpolate(points, length, lambda p: p.full)


def _interpolate(points: Sequence[P], length: int, value: Callable[[P], float]) -> float:
    """The value at a length: linear between two corners, that of the nearest corner outside them."""
    after = bisect.bisect_right(points, length, key=lambda point: point.length)
    if after in (0, len(points)):
        return value(points[max(0, after - 1)])
    a, b = points[after - 1 : after + 1]
    return value(a) + (length - a.length) / (b.length - a.length) * (value(b) - value(a))


def _copied(value: Any) -> Any:
    """Containers and phases change in place; everything else is immutable."""
    match value:
        case list():
            return value[:]
        case dict():
            return {key: _copied(item) for key, item in value.items()}
        case Phase():
            return copy.copy(value)
        case BatchSeries():
            return value.copy()
        case _:
            return value
