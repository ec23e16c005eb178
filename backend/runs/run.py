"""A run: append records, read by cursor.

Watching live, returning after a reload, opening a permalink and exporting are the same read: records are folded into
columns, and a reader gets what lies past its cursor.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec

from tokendyno.backend.messages import Loaded, PageMoves, Samples, Steps, Tokens, Waits
from tokendyno.backend.runs.arm_series import ArmSeries
from tokendyno.backend.runs.batch_series import BatchColumns, clamped, columns_past
from tokendyno.backend.runs.records import ArmEvent, Created, Ended, Expected, OfRun, Predicted, Record, Status
from tokendyno.backend.runs.snapshot import Snapshot

C = TypeVar("C")

MAX_TOKENS_PER_PULL = 4_000
FIGURES_EVERY_S = 0.5
"""While tokens stream in, figures are refreshed no more often than this: summarizing 16,000 tokens takes 6 ms."""


class Columns(msgspec.Struct, frozen=True):
    """One arm past a cursor: tokens `first`..`end`, samples `first_sample`..`end_sample`, and so for characters.

    Sent many times a second, so names on the wire are short.
    """

    first: int
    end: int = msgspec.field(name="n")
    t_s: list[float] = msgspec.field(name="t")
    latency_s: list[float] = msgspec.field(name="lat")
    kv_sliding: list[int] = msgspec.field(name="kvs")
    kv_growing: list[int] = msgspec.field(name="kvf")
    kv_latent: list[int] = msgspec.field(name="kvl")
    kv_state: list[int] = msgspec.field(name="kvt")
    kv_index: list[int] = msgspec.field(name="kvi")
    first_sample: int = msgspec.field(name="sfirst")
    end_sample: int = msgspec.field(name="sn")
    sample_t_s: list[float] = msgspec.field(name="st")
    sample_bytes: list[int] = msgspec.field(name="sm")
    first_character: int = msgspec.field(name="cfirst")
    end_character: int = msgspec.field(name="cn")
    text: str


class Update(NamedTuple, Generic[C]):
    """A run past a viewer's cursors, all of one moment. `version`: changes whenever anything but the columns may have
    changed. `snapshot`: None while the viewer's version is current, or one whose head is cached."""

    status: Status
    ended: bool
    version: int
    columns: list[C]
    snapshot: Snapshot | None


class Run(OfRun):
    """One run, folded from its records. One thread appends; any thread may call the methods.

    `arms` is the live state: from another thread, read a `snapshot` wherever several values must match. `live`: this
    process creates the run now.
    """

    def __init__(self, created: Created, live: bool = False) -> None:
        self.created = created
        self._begin_s = time.monotonic() if live else None
        self.status: Status = "queued"
        self.message = ""
        self.bad_input = False
        self.version = 1
        self.arms = {arm.name: ArmSeries(arm.name) for arm in created.arms}
        self.repeat = 0
        self._figures_at_s = -FIGURES_EVERY_S
        self._lock = threading.Lock()
        self._changed, self._changes_made = threading.Condition(self._lock), 0

    @property
    def id(self) -> str:
        return self.created.id

    @property
    def elapsed_s(self) -> float:
        """Seconds since it was created: in its own process by a clock that never jumps."""
        if self._begin_s is not None:
            return time.monotonic() - self._begin_s
        return max(0.0, time.time() - self.created.created)

    # --- folding ----------------------------------------------------------------------------------

    def append(self, record: Record) -> None:
        """Fold in one more record. ValueError if it cannot follow those before it."""
        with self._lock:
            match record:
                case Created():
                    raise ValueError("a run is created once")
                case ArmEvent(arm=name):
                    if not self.ended:
                        self.status = "running"
                    self.repeat = record.repeat
                    self.arms[name].take(record)
                case Predicted(arm=name):
                    self.arms[name].predicted = record
                case Expected(arm=name, seconds=seconds, whole=whole):
                    self.arms[name].expected_s, self.arms[name].expected_whole_s = seconds, whole
                case Ended(at_s=at_s, status=status, message=message, bad_input=bad_input):
                    self.status, self.message, self.bad_input = status, message, bad_input
                    for arm in self.arms.values():
                        arm.close(status, at_s)
            changed = self._changes(record)
            if changed:
                self.version += 1
            if changed or (isinstance(record, ArmEvent) and isinstance(record.event, Tokens | Steps)):
                self._changes_made += 1
                self._changed.notify_all()

    def _changes(self, record: Record) -> bool:
        """Whether this record may have changed more than the columns."""
        match record:
            case ArmEvent(event=Tokens() | Steps()):
                refresh = record.at_s - self._figures_at_s >= FIGURES_EVERY_S
                if refresh:
                    self._figures_at_s = record.at_s
                return refresh
            case ArmEvent(event=Samples() | Loaded() | Waits() | PageMoves()):
                return False
            case _:
                return True

    # --- reading ----------------------------------------------------------------------------------

    def wait(self, seconds: float) -> float:
        """Wait for the next tokens or change, at most so long. Returns how long it took."""
        begin_s = time.monotonic()
        with self._changed:
            before = self._changes_made
            self._changed.wait_for(lambda: self.ended or self._changes_made != before, seconds)
        return time.monotonic() - begin_s

    def snapshot(self) -> Snapshot:
        with self._lock:
            return self._snapshot()

    def _snapshot(self) -> Snapshot:
        arms = {name: arm.copy() for name, arm in self.arms.items()}
        return Snapshot(self.created, self.status, self.message, self.repeat, arms)

    def past(self, version: int, cursors: Sequence[Sequence[int]], cached: int | None = None) -> Update[Columns]:
        """What lies past `cursors`: (tokens, samples, characters) of each arm. `cached`: a version whose head is
        known already, so that it needs no snapshot."""
        return self._past(version, cached, cursors, _columns)

    def past_batch(
        self, version: int, cursors: Sequence[Sequence[int]], cached: int | None = None
    ) -> Update[BatchColumns]:
        """What lies past cursors of many requests: (steps, waits, moves of pages, ends of requests) of each arm."""
        return self._past(version, cached, cursors, lambda arm, cursor: columns_past(arm.batch, cursor))

    def _past(
        self,
        version: int,
        cached: int | None,
        cursors: Sequence[Sequence[int]],
        read: Callable[[ArmSeries, Sequence[int]], tuple[C, bool]],
    ) -> Update[C]:
        """`read`: the columns of an arm past a cursor, and whether they reach the end of its series."""
        with self._lock:
            by_arm = [read(arm, cursor) for arm, cursor in zip(self.arms.values(), cursors, strict=False)]
            ended = self.ended and all(complete for _, complete in by_arm)
            snapshot = self._snapshot() if self.version not in (version, cached) else None
            return Update(self.status, ended, self.version, [columns for columns, _ in by_arm], snapshot)


def folded(records: Sequence[Record]) -> Run:
    """The run that records make, the first of which says that it was created."""
    first, *rest = records
    assert isinstance(first, Created)
    run = Run(first)
    for record in rest:
        run.append(record)
    return run


def _columns(arm: ArmSeries, cursor: Sequence[int]) -> tuple[Columns, bool]:
    tokens, samples, characters = len(arm.t_s), len(arm.sample_t_s), len(arm.text)
    first, sample, character = map(clamped, cursor, (tokens, samples, characters))
    end = min(tokens, first + MAX_TOKENS_PER_PULL)
    columns = Columns(
        first,
        end,
        arm.t_s[first:end],
        arm.latency_s[first:end],
        arm.kv_sliding[first:end],
        arm.kv_growing(first, end),
        arm.kv_latent[first:end],
        arm.kv_state[first:end],
        arm.kv_index[first:end],
        sample,
        samples,
        arm.sample_t_s[sample:],
        arm.sample_bytes[sample:],
        character,
        characters,
        arm.text[character:],
    )
    return columns, end == tokens
