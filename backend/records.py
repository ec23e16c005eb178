"""What the run log keeps: one record a row, append-only, the same in memory, in SQLite and in a file."""

from typing import Literal

import msgspec

from backend.config import Workload
from backend.messages import Event

Status = Literal["queued", "running", "done", "failed", "cancelled", "interrupted"]
Level = Literal["ok", "note", "fallback", "blocked"]
Unit = Literal["token", "forward"]


class Verdict(msgspec.Struct, frozen=True):
    """What a rule says of one axis before anything runs.

    note      runs as asked, with a remark
    fallback  will run as `becomes` instead, shown in amber
    blocked   will not be run
    fix       axis -> choice that settles it with one click
    source    where the rule was read or measured
    """

    level: Level
    axis: str
    reason: str
    fix: dict[str, str] = {}
    source: str = ""
    becomes: str = ""


class KvPoint(msgspec.Struct, frozen=True):
    """A corner of the predicted KV curve: bytes by layer kind when `length` tokens are cached."""

    length: int
    sliding: int
    full: int


class FloorPoint(msgspec.Struct, frozen=True):
    """A point of an arm's floor: the least seconds of the token that attends to `length` tokens."""

    length: int
    seconds: float


class ArmRequest(msgspec.Struct, frozen=True):
    """An arm as the user asked for it: the choices that differ from the default, by axis."""

    name: str
    choices: dict[str, str] = {}


class Request(msgspec.Struct, frozen=True):
    """A whole run as asked: one or two arms on one model under one workload."""

    model: str
    arms: list[ArmRequest]
    workload: Workload


class ArmPlanned(msgspec.Struct, frozen=True):
    """An arm after the rules: every axis with what was requested and what will be done.

    itemsize        bytes of one cached number, from the planned dtype
    predicted_bytes weights, KV at the end, workspace and runtime: name -> bytes
    """

    name: str
    requested: dict[str, str]
    planned: dict[str, str]
    verdicts: list[Verdict]
    predicted_bytes: dict[str, int] = {}


class Created(msgspec.Struct, frozen=True, tag="created", tag_field="record"):
    """The first record of every run. `created`: seconds since the epoch, UTC; `unit`: what is timed one by one."""

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


class ArmEvent(msgspec.Struct, frozen=True, tag="arm", tag_field="record"):
    """An event of one arm's worker. `at_s`: seconds since the run was created."""

    arm: str
    repeat: int
    at_s: float
    event: Event


class Foretold(msgspec.Struct, frozen=True, tag="foretold", tag_field="record"):
    """What is predicted for an arm once its prompt's length is known: the KV curve, and the floor of its tokens.

    floor_note  the rate that the floor was worked out from, or why there is none
    floor_work  what the first step must do at that rate
    memory      peak memory of the run as it is: bytes by part, "tensors" and "total" among them
    """

    arm: str
    points: list[KvPoint]
    floor: list[FloorPoint] = []
    floor_note: str = ""
    floor_work: str = ""
    memory: dict[str, int] = {}


class Ended(msgspec.Struct, frozen=True, tag="ended", tag_field="record"):
    """The last record of a run. `message` is a sentence for people, empty when all went well;
    `bad_input`: the request could not be done as written, nothing broke."""

    at_s: float
    status: Status
    message: str = ""
    bad_input: bool = False


Record = Created | ArmEvent | Foretold | Ended

encode_record = msgspec.json.Encoder().encode
decode_record = msgspec.json.Decoder(Record).decode
