"""The records of a run: one per row, append-only, identical in memory, in SQLite and in a file.

Field names and tags on the wire never change, so that every stored history still opens; `rename` keeps an old name
where the Python name has improved.
"""

from typing import Literal

import msgspec

from tokendyno.backend.config import Request
from tokendyno.backend.errors import UNDECODABLE
from tokendyno.backend.evidence import Verdict
from tokendyno.backend.messages import Event, PhaseName
from tokendyno.backend.predict.kv import KvPoint

Status = Literal["queued", "running", "done", "failed", "cancelled", "interrupted"]
Unit = Literal["token", "forward"]
"""What is timed: each token of a decoder, or each forward pass of an encoder."""

Origin = Literal["here", "imported", "shipped"]
"""How a run came into this history: it ran on this machine; from a file; with tokendyno (`presets/recordings/`)."""


class RooflinePoint(msgspec.Struct, frozen=True):
    """A corner of the roofline curve: the least seconds for the token that attends to `length` tokens."""

    length: int
    seconds: float


class WaitKeys(msgspec.Struct, frozen=True, omit_defaults=True):
    """Arms with the same `load` should take as long to load, and with the same `run` as long to prepare (compiling,
    warm-up). `plan`: of the same plan and files, on the same machine and with the same versions, whatever the workload.
    "" in records of older versions. See `runs/earlier.py`."""

    load: str = ""
    run: str = ""
    plan: str = ""


class StepReads(msgspec.Struct, frozen=True):
    """What one of the first steps must read: bytes of weights and of the KV cache, and how fast memory is read.
    `bytes_per_s`: measured on this machine or from a data sheet, as `source` says; None if unknown."""

    weight_bytes: int
    kv_bytes: int
    bytes_per_s: float | None = None
    source: str = ""


class ArmPlanned(msgspec.Struct, frozen=True):
    """An arm after the rules: for every axis, what was requested and what will be done. `predicted_bytes`: weights, KV
    cache at the end, workspace and runtime: name -> bytes."""

    name: str
    requested: dict[str, str]
    planned: dict[str, str]
    verdicts: list[Verdict]
    predicted_bytes: dict[str, int] = {}
    waits: WaitKeys = WaitKeys()


class Created(msgspec.Struct, frozen=True, tag="created", tag_field="record"):
    """The first record of every run. `created`: seconds since the epoch, UTC; `versions`: package -> version, empty in
    records of older versions."""

    id: str
    created: float
    request: Request
    arms: list[ArmPlanned]
    model_label: str
    model_note: str
    machine: dict[str, str]
    device: str
    owner: str = ""
    unit: Unit = "token"
    versions: dict[str, str] = {}
    origin: Origin = "here"


class ArmEvent(msgspec.Struct, frozen=True, tag="arm", tag_field="record"):
    """An event from one arm's worker. `at_s`: seconds since the run was created."""

    arm: str
    repeat: int
    at_s: float
    event: Event


class PrefillBound(msgspec.Struct, frozen=True):
    """The least seconds to the first token, and the operations or bytes that limit it, in words."""

    seconds: float
    limited_by: Literal["memory", "compute"]
    work: str


class Predicted(
    msgspec.Struct,
    frozen=True,
    tag="foretold",
    tag_field="record",
    rename={"kv": "points", "roofline": "floor", "roofline_note": "floor_note", "roofline_work": "floor_work"},
):
    """Predictions for one arm, made as soon as the length of its prompt is known.

    roofline_note  the peak rates behind the bound, or why there is none
    roofline_work  bytes or FLOPs of the first decode step
    exchanges      whether the bound has what several ranks exchange: "" where there is one
    memory         peak memory of this run: bytes by part, "tensors" and "total" among them
    reads          what one of the first steps must read; None where steps differ
    prefill        the bound of the time to first token; None where that is not known
    """

    arm: str
    kv: list[KvPoint]
    roofline: list[RooflinePoint] = []
    roofline_note: str = ""
    roofline_work: str = ""
    memory: dict[str, int] = {}
    reads: StepReads | None = None
    exchanges: Literal["", "included", "not counted"] = ""
    prefill: PrefillBound | None = None


class Expected(msgspec.Struct, frozen=True, tag="expected", tag_field="record"):
    """Seconds that phases took in earlier runs of the same shape; `whole`: all runs, proofs, texts, each in sum."""

    arm: str
    seconds: dict[PhaseName, float]
    whole: dict[PhaseName, float] = {}


class Ended(msgspec.Struct, frozen=True, tag="ended", tag_field="record"):
    """The last record of a run. `verdict`: what the run came to, in a line; None where that was not asked
    (`backend/history/history.py` does)."""

    at_s: float
    status: Status
    message: str = ""
    bad_input: bool = False
    verdict: str | None = None


UNREADABLE = "The rest of this run could not be read from the history."
"""Where a stored run stops because a record is damaged."""

Record = Created | ArmEvent | Predicted | Expected | Ended

BROKEN_RECORD = (*UNDECODABLE, TypeError)
"""What `decode_record` raises for whatever a damaged file has in the place of a record."""

encode_record = msgspec.json.Encoder().encode
decode_record = msgspec.json.Decoder(Record).decode


class OfRun:
    """What follows from a run's creation and its status, for whatever holds the two."""

    __slots__ = ()
    created: Created
    status: Status

    @property
    def request(self) -> Request:
        return self.created.request

    @property
    def unit(self) -> Unit:
        return self.created.unit

    @property
    def ended(self) -> bool:
        return self.status not in ("queued", "running")
