"""How fast this CPU computes in bfloat16: measured once beside the memory bandwidth, and kept with it."""

import contextlib
import math
from collections.abc import Sequence

import msgspec

from tokendyno.backend.errors import UNDECODABLE
from tokendyno.backend.paths import bandwidth_file


class FormatTime(msgspec.Struct, frozen=True):
    """A decoder's step of products took `ratio` times as long in bfloat16 as in float32, with weights of so many bytes
    in bfloat16 and so many rows (sequences in a batch)."""

    weight_bytes: int
    rows: int
    ratio: float


class _Kept(msgspec.Struct, frozen=True):
    """What concerns number formats in a kept measurement."""

    device: str
    bfloat16: list[FormatTime] = []


def recall(device: str) -> tuple[FormatTime, ...]:
    """What is kept of a device, by its name; empty if nothing is, or it cannot be read."""
    with contextlib.suppress(OSError, *UNDECODABLE):
        kept = msgspec.json.decode(bandwidth_file().read_bytes(), type=list[_Kept])
        return next((tuple(one.bfloat16) for one in kept if one.device == device), ())
    return ()


def nearest(times: Sequence[FormatTime], weight_bytes: int, rows: int) -> FormatTime | None:
    """The measurement that is nearest in size, then in rows; None if there is none."""
    size = math.log(max(1, weight_bytes))
    return min(times, key=lambda time: (abs(math.log(time.weight_bytes) - size), abs(time.rows - rows)), default=None)
