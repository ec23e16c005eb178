"""The log of a run of many requests: the generating thread notes each step, another thread sends what is new."""

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from tokendyno.backend.messages import NO_TOKEN, EndReason, PageMoves, RequestEnds, Steps, WaitReason, Waits
from tokendyno.backend.worker.channel import Channel
from tokendyno.backend.worker.measure.annotations import Annotations
from tokendyno.backend.worker.measure.memory import Sampler
from tokendyno.backend.worker.measure.stream import Sender


class Part(NamedTuple):
    """What one request did in a step; see `messages.Steps`."""

    request: int
    kind: int
    tokens: int
    made: int = NO_TOKEN


class StepRow(NamedTuple):
    """One step. `end`: a time since the beginning, in seconds. `free_bytes`: -1 where there are no pages."""

    begin_s: float
    end_s: float
    parts: Sequence[Part]
    padding: int
    waiting: int
    free_bytes: int = -1


class StepLog:
    """Written by the generating thread, read by others: lists only grow.

    ahead     steps that were given to the device and have not ended, but for the one under way
    launched  the step that is under way, counted from 0
    ended     requests that have ended
    """

    clock = "host clock after the step"

    def __init__(self, arrivals_s: Sequence[float]) -> None:
        self.rows: list[StepRow] = []
        self.waits: list[tuple[float, int, WaitReason]] = []
        self.moves: list[tuple[int, int, int, int]] = []
        self.ends: list[tuple[int, float, EndReason]] = []
        self.ids: list[list[int]] = [[] for _ in arrivals_s]
        self._arrivals_s = arrivals_s
        self._arrived = 0
        self._entered: set[int] = set()
        self.ended: set[int] = set()
        self._waiting_for: dict[int, WaitReason] = {}
        self.begin = 0.0
        self.ahead = 0

    def release(self) -> None:
        """Nothing: it holds no cache."""

    @property
    def launched(self) -> int:
        return len(self.rows) + self.ahead

    def start(self) -> None:
        self.begin = time.perf_counter()

    def now_s(self) -> float:
        return time.perf_counter() - self.begin

    def arrived(self, now_s: float) -> int:
        """How many requests have arrived by now: the first so many."""
        while self._arrived < len(self._arrivals_s) and self._arrivals_s[self._arrived] <= now_s:
            self._arrived += 1
        return self._arrived

    def waiting(self) -> list[int]:
        """Requests that have arrived and were in no step yet."""
        return [i for i in range(self._arrived) if i not in self._entered and i not in self.ended]

    def enter(self, requests: Sequence[int]) -> None:
        self._entered.update(requests)
        for request in requests:
            self._waiting_for.pop(request, None)

    def wait(self, at_s: float, request: int, reason: WaitReason) -> None:
        """A request waits for that reason; noted where it changed."""
        if self._waiting_for.get(request) != reason:
            self._waiting_for[request] = reason
            self.waits.append((at_s, request, reason))

    def add(self, row: StepRow) -> None:
        for part in row.parts:
            if part.made != NO_TOKEN:
                self.ids[part.request].append(part.made)
        self.rows.append(row)

    def end(self, request: int, at_s: float, reason: EndReason) -> None:
        if request not in self.ended:
            self.ended.add(request)
            self.ends.append((request, at_s, reason))


class StepStreamer(Sender):
    """Sends what is new in a log."""

    def __init__(
        self, log: StepLog, sampler: Sampler, tokenizer: Any, channel: Channel, annotations: Annotations
    ) -> None:
        super().__init__(sampler, channel, annotations)
        self._log, self._tokenizer = log, tokenizer
        self._sent: Counter[str] = Counter()  # how many of each list

    def _new(self, name: str) -> list[Any]:
        """What the log has of that name and was not sent yet."""
        new: list[Any] = getattr(self._log, name)[self._sent[name] :]
        self._sent[name] += len(new)
        return new

    def _flush_rows(self) -> None:
        ends = self._new("ends")  # before the steps: an end is sent after the last step of its request
        if moves := self._new("moves"):
            self._channel.send(PageMoves(*map(list, zip(*moves, strict=True))))
        first = self._sent["rows"]
        if rows := self._new("rows"):
            self._send_steps(first, rows)
        if waits := self._new("waits"):
            self._channel.send(Waits(*map(list, zip(*waits, strict=True))))
        if ends:
            requests, at_s, reasons = map(list, zip(*ends, strict=True))
            texts = [self._tokenizer.decode(self._log.ids[i], skip_special_tokens=True) for i in requests]
            self._channel.send(RequestEnds(requests, at_s, reasons, texts))

    def _send_steps(self, first: int, rows: list[StepRow]) -> None:
        parts = [part for row in rows for part in row.parts]
        self._channel.send(
            Steps(
                first=first,
                begin_s=[row.begin_s for row in rows],
                end_s=[row.end_s for row in rows],
                parts=[len(row.parts) for row in rows],
                padding=[row.padding for row in rows],
                waiting=[row.waiting for row in rows],
                request=[part.request for part in parts],
                kind=[part.kind for part in parts],
                tokens=[part.tokens for part in parts],
                made=[part.made for part in parts],
                free_bytes=[row.free_bytes for row in rows] if rows[0].free_bytes >= 0 else [],
            )
        )
        self._times_s += [row.end_s for row in rows]
