"""The JSON document of `check`: an arm that was checked without running it."""

import msgspec

from tokendyno.backend.arms.arguments import Arguments, arguments_of
from tokendyno.backend.arms.check import Checked
from tokendyno.backend.evidence import Verdict


class PredictedBytes(msgspec.Struct, frozen=True):
    """Predicted memory of an arm; `total` is the peak of the whole run, which may differ by `margin` percent: 0 where
    none is stated."""

    weights: int
    kv: int
    total: int
    margin: float


class CheckDocument(msgspec.Struct, frozen=True):
    """An arm after the rules. `requested` and `planned` name every axis; `free_bytes`: of the device it would use, by
    which it was checked; `arguments`: what transformers' calls get."""

    model: str
    runnable: bool
    requested: dict[str, str]
    planned: dict[str, str]
    verdicts: list[Verdict]
    predicted_bytes: PredictedBytes
    free_bytes: int
    arguments: Arguments
    kind: str = "check"
    schema: int = 3


def check_document(model: str, checked: Checked) -> CheckDocument:
    """The document."""
    memory = checked.memory
    predicted = PredictedBytes(memory.weights, memory.kv, memory.total, 100 * memory.margin)
    return CheckDocument(
        model=model,
        runnable=not checked.blocked,
        requested=dict(checked.requested),
        planned=dict(checked.planned),
        verdicts=list(checked.verdicts),
        predicted_bytes=predicted,
        free_bytes=checked.room_bytes,
        arguments=arguments_of(checked),
    )
