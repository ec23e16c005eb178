"""The JSON documents of `check`, `models` and `doctor`: their fields are the keys."""

import msgspec

from backend.evidence import Verdict
from backend.hardware.bandwidth import Bandwidth
from backend.hosting.limits import Limits


class PredictedBytes(msgspec.Struct, frozen=True):
    """Predicted memory of an arm; `total` is the peak of the whole run."""

    weights: int
    kv: int
    total: int


class CheckDocument(msgspec.Struct, frozen=True):
    """An arm after the rules. `requested` and `planned` name every axis; `free_bytes`: of the device it would use."""

    model: str
    runnable: bool
    requested: dict[str, str]
    planned: dict[str, str]
    verdicts: list[Verdict]
    predicted_bytes: PredictedBytes
    free_bytes: int
    kind: str = "check"
    schema: int = 2


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
    schema: int = 2


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
    schema: int = 2
