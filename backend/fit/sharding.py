"""How each parameter of a model is split over ranks, layer by layer: told by transformers' own sharding.

A process of its own builds the model without memory and splits it in a group whose other ranks do not exist
(`backend/worker/sharding.py`), so that every architecture is shown that transformers knows, with the plan that a run
would have.
"""

import functools
import subprocess
from dataclasses import dataclass

import msgspec

from tokendyno.backend.child_python import last_words, python_command
from tokendyno.backend.errors import UNDECODABLE, InputError
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.models.counting import answered
from tokendyno.backend.predict.parallel import check_number, check_sizes, is_modeled
from tokendyno.backend.units import bytes_text

CPU_SECONDS = 120.0
COMMAND = python_command("tokendyno.backend.worker.sharding")


class ShardRequest(msgspec.Struct, frozen=True):
    """A config (the text of a config.json), the dtype of the weights, and `tp_size` and `ep_size` of transformers."""

    config_json: str
    dtype: str
    tensor: int
    expert: int


class ShardRow(msgspec.Struct, frozen=True):
    """Parameters with one name but for the number of their layer, and of one shape.

    name    with * in place of the layer's number
    how     in words: which part of it a rank has
    whole, local  shape in the model, and on the first rank, which has the largest part
    """

    name: str
    count: int
    how: str
    whole: tuple[int, ...]
    local: tuple[int, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class Sharding:
    """How `choice` of the axis `parallel` splits a model."""

    facts: ModelFacts
    choice: str
    rows: tuple[ShardRow, ...]

    @property
    def rank_bytes(self) -> int:
        """Parameters of the first rank."""
        return sum(row.bytes for row in self.rows)

    @property
    def heading(self) -> str:
        """The model, the choice and the sum."""
        size = " ".join(bytes_text(self.rank_bytes))
        heading = f"{self.facts.label} as parallel={self.choice}: {size} of parameters on the first rank"
        if is_modeled(self.facts):
            return heading
        return f"{heading}. So transformers splits it; no arm runs so: {self.facts.architecture} is not modeled here"


def sharding(facts: ModelFacts, choice: str) -> Sharding:
    """How a choice splits a model. InputError for what splits nothing, does not divide, or has no plan."""
    kind, _, number = choice.partition("-")
    if kind not in ("tensor", "expert") or not number.isdecimal() or int(number) < 2:
        raise InputError(f"{choice!r} splits no parameter. Give tensor-N or expert-N, such as tensor-2.")
    ranks = int(number)
    expert = ranks if kind == "expert" else 1
    check_number(ranks)
    if is_modeled(facts):
        check_sizes(facts, ranks, expert)
    request = ShardRequest(facts.source.config_json, facts.dtype, ranks, expert)
    return Sharding(facts, choice, _split(facts.label, choice, request))


@functools.lru_cache(maxsize=64)
def _split(label: str, choice: str, request: ShardRequest) -> tuple[ShardRow, ...]:
    """The rows, by a process that takes seconds."""
    try:
        done = answered(COMMAND, msgspec.json.encode(request), CPU_SECONDS)
        return msgspec.json.decode(done.stdout, type=tuple[ShardRow, ...])
    except subprocess.CalledProcessError as error:
        reason = last_words(error.stderr.decode("utf-8", "replace").splitlines()) or "no reason given"
        reason = reason.removeprefix("ValueError: ")
        raise InputError(f"transformers cannot split {label} as {choice}: {reason}") from None
    except subprocess.TimeoutExpired:
        raise InputError(
            f"{label} was not split within {CPU_SECONDS:.0f} s of a processor's time. Choose a smaller model."
        ) from None
    except (OSError, subprocess.SubprocessError, *UNDECODABLE):
        raise InputError(f"The process that splits {label} ended without an answer. Try again.") from None


def sharding_cells(row: ShardRow) -> list[str]:
    """Name, how, number, shapes and bytes, as text."""
    whole, local = (" x ".join(f"{size:,}" for size in shape) for shape in (row.whole, row.local))
    return [row.name, row.how, f"{row.count:,}", whole, local, " ".join(bytes_text(row.bytes))]


SHARDING_COLUMNS = ("Parameter", "How", "Number", "Shape", "On rank 0", "Bytes there")
