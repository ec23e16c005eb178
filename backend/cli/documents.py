"""The JSON documents of `models` and `doctor`: their fields are the keys."""

import msgspec

from backend.fit.sharding import ShardRow
from backend.hardware.bandwidth import Bandwidth
from backend.hosting.limits import Limits


class ModelEntry(msgspec.Struct, frozen=True):
    """One model of the catalogue."""

    name: str
    title: str
    kind: str
    repo: str
    note: str
    default: bool


class ModelsDocument(msgspec.Struct, frozen=True):
    """The catalogue."""

    models: list[ModelEntry]
    kind: str = "models"
    schema: int = 3


class ShardingDocument(msgspec.Struct, frozen=True):
    """How a choice of `parallel` splits a model."""

    model: str
    choice: str
    rank_bytes: int
    rows: list[ShardRow]
    kind: str = "sharding"
    schema: int = 3


class ChoiceEntry(msgspec.Struct, frozen=True):
    """One choice of one axis on this machine. `why`: a remark, or why it is not usable."""

    axis: str
    choice: str
    usable: bool
    why: str


class DoctorDocument(msgspec.Struct, frozen=True):
    """The machine and what it can run. `bandwidth` is None where none was measured; `limits`: what visitors may do in
    each mode, null where there is no limit."""

    machine: dict[str, str]
    versions: dict[str, str]
    problems: list[str]
    choices: list[ChoiceEntry]
    bandwidth: Bandwidth | None
    limits: dict[str, Limits]
    kind: str = "doctor"
    schema: int = 3
