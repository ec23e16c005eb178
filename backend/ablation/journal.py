"""A journal of finished trials: one line of JSON each, written through to the disk, so that a kill costs one trial."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Literal

import msgspec

from tokendyno.backend import hardware
from tokendyno.backend.config import Workload
from tokendyno.backend.errors import UNDECODABLE, InputError, shown
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.units import plural
from tokendyno.backend.views.quality import counts

SWEEP = "sweep"
"""The kind in the heading of a sweep; its changes are what is varied, each with its values."""

ADVICE = "advise"
"""The kind in the heading of advice; its changes are the wish, the limits, and texts of its own."""


class Heading(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="ablation", tag_field="line"):
    """What is ablated; the first line. Trials count only for the same heading: on the same machine and versions.

    rounds, positions  how often each arm runs, and tokens to predict in each text; 0 where the command decides that
                       each time it is called
    budget_s           likewise: seconds that advice may take
    machine            its GPU, or its CPU with the number of cores
    traffic            the preset that requests are drawn from, with the workload's seed; "": one prompt
    """

    model: str
    base: dict[str, str]
    changes: list[tuple[str, str]]
    kinds: list[str]
    workload: Workload
    device: str = ""
    versions: dict[str, str] = {}
    rounds: int = 0
    positions: int = 0
    owner: str = ""
    machine: str = ""
    traffic: str = ""
    budget_s: float = 0.0

    @property
    def undecided(self) -> "Heading":
        """The same of a command that decides rounds and budget each time it is called."""
        positions = self.positions if self.kinds == [ADVICE] else 0
        return msgspec.structs.replace(self, rounds=0, positions=positions, budget_s=0.0)

    def begun(self, machine: Machine) -> "Heading":
        """The same as it would begin now, on that machine."""
        return msgspec.structs.replace(self, device=machine.device, machine=machine.name, versions=hardware.versions())

    def mismatch(self, now: "Heading") -> str:
        """Why trials that were measured under this heading cannot stand beside those of `now`, as a clause; "" if they
        can."""
        if (self.device, self.machine) != (now.device, now.machine):
            return f"it was begun on another machine ({self.machine or self.device}; this is {now.machine})"
        packages = sorted({*self.versions, *now.versions})
        versions = ((name, self.versions.get(name, "missing"), now.versions.get(name, "missing")) for name in packages)
        differ = [f"{name} {then}, here {here}" for name, then, here in versions if then != here]
        return f"it was begun with other versions ({'; '.join(differ)})" if differ else ""


class TrialsDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """What the document of every kind of trials begins with, after its `kind`."""

    schema: Literal[3]
    model: str
    model_label: str
    machine: dict[str, str]
    versions: dict[str, str]


def document_head(
    model: str, facts: ModelFacts, machine: Machine
) -> tuple[Literal[3], str, str, dict[str, str], dict[str, str]]:
    """The fields of a `TrialsDocument`."""
    return 3, model, facts.label, machine.describe(), hardware.versions()


class Trial(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="trial", tag_field="line"):
    """One run of one arm.

    latency_s        of each step; of many requests, the TTFT and the time per output token of the middle ones
    gpu, node        UUID of the card, "" on a CPU; the machine, "" for this one
    spent_s          what it took, start and proof included
    start_s          of a fresh worker, from its imports to its first token: an arm changes nothing of what comes before
    """

    arm: str
    round: int
    latency_s: list[float]
    ttft_s: float
    peak_memory_bytes: int
    kv_bytes: int | None
    ids: list[int]
    doubtful: dict[str, str] = {}
    gpu: str = ""
    node: str = ""
    useful_tokens_s: float | None = None
    spent_s: float = 0.0
    start_s: float | None = None


class Cost(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="quality", tag_field="line"):
    """What an arm costs in quality against the base (see `runs.quality.ReadingDifference`).

    cost         none, rounding, small or large; "" with random weights, which have no quality
    kl_interval  bootstrap interval of its mean over positions
    finer        its weights take more bytes than the base's, so that what it predicts otherwise is no cost
    """

    arm: str
    kl_nats: float
    top1_agreement: float
    perplexity_ratio: float
    cost: str
    kl_interval: tuple[float, float] | None = None
    finer: bool = False
    spent_s: float = 0.0

    @property
    def gains(self) -> bool:
        return self.finer or counts(self.cost)


class Left(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="left", tag_field="line"):
    """An arm that advice has given up: why, as a sentence. `tried`: it failed, else its start took too long."""

    arm: str
    why: str
    tried: bool
    spent_s: float = 0.0


class Confirmed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="confirmed", tag_field="line"):
    """The arm that is advised: the run in which it was measured again, beside the base, in fresh workers."""

    arm: str
    run: str
    spent_s: float = 0.0


Line = Trial | Cost | Left | Confirmed

MAX_HEADING_BYTES = 8 << 20
_MUST_BEGIN = "it must begin with what is measured"

_encode = msgspec.json.Encoder().encode
_decode: Callable[[bytes], Heading | Line] = msgspec.json.Decoder(Heading | Line).decode


def heading_of(path: Path) -> Heading:
    """What a journal is of. InputError if it is none, or cannot be read."""
    try:
        with path.open("rb") as file:
            first = _decode(file.readline(MAX_HEADING_BYTES))
    except OSError as error:
        raise InputError(f"The journal {path.name} cannot be read ({error.strerror}). Name another file.") from error
    except UNDECODABLE as error:
        raise InputError(
            f"The journal {path.name} is damaged or of another version, so it cannot be read. Measure again."
        ) from error
    if not isinstance(first, Heading):
        raise InputError(f"{path.name} is no journal: {_MUST_BEGIN}. Measure again.")
    return first


def in_use(path: Path) -> bool:
    """Whether a process writes this journal now."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass  # whoever reads it says why
    return False


class Journal:
    """A file, or only memory where none is named. InputError if the file belongs to another ablation, is in use or
    cannot be written; it is then left as it is.

    only_read   the file is not changed, and may be written by somebody else meanwhile
    """

    def __init__(self, path: Path | None, heading: Heading, only_read: bool = False) -> None:
        self.trials: dict[tuple[str, int], Trial] = {}
        self.costs: dict[str, Cost] = {}
        self.left: dict[str, Left] = {}
        self.confirmed: Confirmed | None = None
        self._path, self._file = path, None
        if path is not None and only_read:
            with self._opened(path, "rb") as file:
                self._read(file, heading)
        elif path is not None:
            self._file = self._locked(path, heading)

    def add(self, line: Line) -> None:
        """Keep a finished trial. InputError on a full disk: what was written before stays."""
        self._take(line)
        if self._file is not None:
            self._write(self._file, line)

    def of(self, arm: str) -> list[Trial]:
        return sorted((trial for (name, _), trial in self.trials.items() if name == arm), key=lambda trial: trial.round)

    @property
    def results(self) -> list[Line]:
        """Everything that is kept."""
        lines: list[Line] = [*self.trials.values(), *self.costs.values(), *self.left.values()]
        return [*lines, *([self.confirmed] if self.confirmed is not None else [])]

    @property
    def runs(self) -> int:
        """How many runs it took: trials, readings, arms that were given up once they ran, and the last measurement."""
        given_up = sum(left.spent_s > 0 for left in self.left.values())
        return len(self.trials) + len(self.costs) + given_up + (self.confirmed is not None)

    def close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # the rest of a line that could not be written, as was said then
                self._file.close()

    def _take(self, line: Line) -> None:
        match line:
            case Trial():
                self.trials[line.arm, line.round] = line
            case Cost():
                self.costs[line.arm] = line
            case Left():
                self.left[line.arm] = line
            case Confirmed():
                self.confirmed = line

    def _locked(self, path: Path, heading: Heading) -> BinaryIO:
        """The file, to be written by this process alone; without a line that was torn when it was written last."""
        file = self._opened(path, "a+b")
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise InputError(
                    f"Another process writes the journal {path} now. Wait for its end, or name another file."
                ) from error
            valid_bytes = self._read(file, heading)
            file.truncate(valid_bytes)
            if not valid_bytes:
                self._write(file, heading)
        except InputError:
            with contextlib.suppress(OSError):  # the rest of a line that could not be written, as was said then
                file.close()
            raise
        return file

    def _opened(self, path: Path, mode: Literal["rb", "a+b"]) -> BinaryIO:
        try:
            if path.exists() and not path.is_file():
                raise InputError(f"The journal {path} is no regular file. Name another.")
            return open(path, mode)
        except OSError as error:
            raise InputError(
                f"The journal {shown(path)} cannot be opened ({error.strerror}). Name another file."
            ) from error

    def _read(self, file: BinaryIO, heading: Heading) -> int:
        """Take every whole line; returns their bytes. What follows was torn by a kill while it was written."""
        file.seek(0)
        first = file.readline(MAX_HEADING_BYTES)
        if not first.endswith(b"\n"):
            if not (_encode(heading) + b"\n").startswith(first):
                raise self._foreign()
            return 0
        self._require_same(self._line(first, 1), heading)
        valid_bytes = len(first)
        for number, data in enumerate(file, 2):
            if not data.endswith(b"\n"):
                break
            line = self._line(data, number)
            if isinstance(line, Heading):
                raise self._foreign()
            self._take(line)
            valid_bytes += len(data)
        return valid_bytes

    def _line(self, data: bytes, number: int) -> Heading | Line:
        try:
            return _decode(data)
        except UNDECODABLE as error:
            kept = number - 2  # results that come before it
            or_else = f", or remove what begins there to keep {plural(kept, 'result')}"
            raise InputError(
                f"Line {number} of {self._path} is no line of a journal of this version; the file is left as it is. "
                f"Name another file{or_else * (kept > 0)}."
            ) from error

    def _foreign(self) -> InputError:
        return InputError(f"{self._path} is no journal: {_MUST_BEGIN}. It is left as it is. Name another file.")

    def _require_same(self, first: Heading | Line, now: Heading) -> None:
        if not isinstance(first, Heading):
            raise self._foreign()
        decided = (name for name in first.__struct_fields__ if name not in ("device", "machine", "versions"))
        if differing := [name for name in decided if getattr(first, name) != getattr(now, name)]:
            raise InputError(
                f"The journal {self._path} belongs to another command, which differs in {' and '.join(differing)}. "
                "Name another file, or repeat the command with which it began."
            )
        if why := first.mismatch(now):
            raise InputError(
                f"The journal {self._path} cannot go on: {why}. Times from here cannot stand beside its own. Name "
                "another file."
            )

    def _write(self, file: BinaryIO, line: Heading | Line) -> None:
        try:
            file.write(_encode(line) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            how = (
                "Free some space and run the same command again"
                if full
                else "Copy it elsewhere and go on with the copy"
            )
            raise InputError(
                f"The journal {self._path} cannot be written ({error.strerror}). {how}: finished trials are kept."
            ) from error
