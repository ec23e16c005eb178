"""How fast this CPU computes in bfloat16: measured once with the memory bandwidth, and stored with it."""

import math
from collections.abc import Sequence

import msgspec


class FormatTime(msgspec.Struct, frozen=True):
    """The products of a decode step took `ratio` times as long in bfloat16 as in float32, with so many bytes of weights
    in bfloat16, and so many rows (sequences in a batch)."""

    weight_bytes: int
    rows: int
    ratio: float


def nearest(times: Sequence[FormatTime], weight_bytes: int, rows: int) -> FormatTime | None:
    """The measurement nearest in size, then in rows; None if there is none."""
    size = math.log(max(1, weight_bytes))
    return min(times, key=lambda time: (abs(math.log(time.weight_bytes) - size), abs(time.rows - rows)), default=None)
