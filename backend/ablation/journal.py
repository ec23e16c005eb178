"""A journal of finished trials: one line of JSON each, written through to the disk, so that a kill costs one trial."""

import contextlib
import errno
import fcntl
import itertools
import os
from pathlib import Path
from typing import BinaryIO

import msgspec

from backend.config import Workload
from backend.errors import UNDECODABLE, InputError


class Heading(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="ablation", tag_field="line"):
    """What is ablated; the first line. Trials count only for the same heading: on the same machine and versions.

    rounds, positions  how often each arm runs, and tokens to predict in each text; 0 where the command decides that
                       each time it is called
    owner              whose ablation it is, where visitors are told apart
    """

    model: str
    base: dict[str, str]
    changes: list[tuple[str, str]]
    kinds: list[str]
    workload: Workload
    device: str
    versions: dict[str, str]
    rounds: int = 0
    positions: int = 0
    owner: str = ""


class Trial(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="trial", tag_field="line"):
    """One run of one arm. `latency_s`: of each step; `ids`: what it generated; `doubtful`: axes that its ledger does
    not show as planned, with their status; `gpu`: UUID of the card, "" on a CPU; `node`: machine, "" for this one."""

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


class Cost(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="quality", tag_field="line"):
    """What an arm costs in quality against the base (see `runs.quality.ReadingDifference`). `kl_interval`: bootstrap
    interval of its mean over positions."""

    arm: str
    kl_nats: float
    top1_agreement: float
    perplexity_ratio: float
    cost: str
    kl_interval: tuple[float, float] | None = None


MAX_HEADING_BYTES = 4 << 20
MAX_LINE_BYTES = 64 << 20
"""A trial of 16,000 tokens has 0.5 MB."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Heading | Trial | Cost).decode


def heading_of(path: Path) -> Heading:
    """What a journal is of. InputError if it is none, or cannot be read."""
    try:
        with path.open("rb") as file:
            first = _decode(file.readline(MAX_HEADING_BYTES))
    except (OSError, *UNDECODABLE) as error:
        raise InputError(f"The journal {path.name} cannot be read.") from error
    if not isinstance(first, Heading):
        raise InputError(f"{path.name} is no journal: it must begin with what is ablated.")
    return first


class Journal:
    """A file, or only memory where none is named. InputError if the file belongs to another ablation, is in use or
    cannot be written."""

    def __init__(self, path: Path | None, heading: Heading) -> None:
        self.trials: dict[tuple[str, int], Trial] = {}
        self.costs: dict[str, Cost] = {}
        self._path, self._file = path, None
        if path is not None:
            self._file = self._open(path, heading)

    def add(self, line: Trial | Cost) -> None:
        """Keep a finished trial. InputError on a full disk: what was written before stays."""
        self._take(line)
        if self._file is not None:
            self._write(self._file, line)

    def of(self, arm: str) -> list[Trial]:
        """The trials of an arm, by round."""
        return sorted((trial for (name, _), trial in self.trials.items() if name == arm), key=lambda trial: trial.round)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # the rest of a line that could not be written, as was said then
                self._file.close()

    def _take(self, line: Trial | Cost) -> None:
        match line:
            case Trial():
                self.trials[line.arm, line.round] = line
            case Cost():
                self.costs[line.arm] = line

    def _open(self, path: Path, heading: Heading) -> BinaryIO:
        if path.exists() and not path.is_file():
            raise InputError(f"The journal {path} is no regular file. Name another.")
        try:
            file = open(path, "a+b")  # noqa: SIM115
        except OSError as error:
            raise InputError(f"The journal {path} cannot be opened ({error.strerror}). Name another.") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            raise InputError(f"Another ablation writes the journal {path} now. Name another, or wait.") from error
        try:
            self._read(file, heading)
        except InputError:
            file.close()
            raise
        return file

    def _read(self, file: BinaryIO, heading: Heading) -> None:
        file.seek(0)
        good = 0
        for number in itertools.count():
            data = file.readline(MAX_LINE_BYTES)
            if not data.endswith(b"\n"):
                self._require_torn(data, None if number else heading)
                break
            try:
                line = _decode(data)
            except UNDECODABLE as error:
                raise InputError(
                    f"Line {number + 1} of {self._path} is no line of a journal of this version. Name another file."
                ) from error
            if isinstance(line, Heading) != (number == 0):
                raise InputError(f"{self._path} is no journal: it must begin with what is ablated. Name another file.")
            if isinstance(line, Heading):
                self._require_same(line, heading)
            else:
                self._take(line)
            good += len(data)
        file.seek(good)
        file.truncate()
        if not good:
            self._write(file, heading)

    def _require_torn(self, data: bytes, heading: Heading | None) -> None:
        """InputError unless these bytes at the end of the file are what a kill has left of a line, which may then be
        cut off. `heading`: what the line must be where it is the first."""
        if len(data) == MAX_LINE_BYTES or (heading is not None and not _encode(heading).startswith(data)):
            raise InputError(f"{self._path} is no journal of this ablation. Name another file.")

    def _require_same(self, found: Heading, heading: Heading) -> None:
        other = [name for name in Heading.__struct_fields__ if getattr(found, name) != getattr(heading, name)]
        if other:
            raise InputError(
                f"The journal {self._path} belongs to another ablation: {', '.join(other)} differ. Name another file, "
                "or repeat the command with which it began."
            )

    def _write(self, file: BinaryIO, line: Heading | Trial | Cost) -> None:
        try:
            file.write(_encode(line) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        except OSError as error:
            full = " Free some space" if error.errno == errno.ENOSPC else " Name another file"
            raise InputError(
                f"The journal {self._path} cannot be written ({error.strerror}).{full} and run the same command again: "
                "finished trials are kept."
            ) from error
