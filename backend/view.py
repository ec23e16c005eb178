"""What a viewer gets of a run: plain columns and sentences, ready to be shown as text.

Numbers are turned into words here, once: three significant digits, a unit beside each.
"""

import math

import msgspec

from backend.messages import MarkKind
from backend.records import Unit, Verdict


class Phase(msgspec.Struct):
    """One step of an arm's way. `begin_s`: seconds since the run was created."""

    name: str
    title: str
    state: str
    begin_s: float
    seconds: float
    fraction: float | None = None
    note: str = ""


class Tile(msgspec.Struct, frozen=True):
    """A figure with its unit. `note` says more, in small print."""

    key: str
    label: str
    value: str
    unit: str
    note: str = ""


class LedgerRow(msgspec.Struct, frozen=True):
    """A row of the ledger; `status`: proved (green), fallback (amber), failed (red)."""

    axis: str
    requested: str
    planned: str
    effective: str
    proof: str
    status: str
    reason: str


class Curve(msgspec.Struct, frozen=True):
    """The predicted KV bytes over sequence length, as corner points."""

    x: list[int]
    sliding: list[int]
    full: list[int]


class FloorCurve(msgspec.Struct, frozen=True):
    """The least seconds a token can take, over the token's index, as corner points."""

    x: list[int]
    s: list[float]


class MarkPoint(msgspec.Struct, frozen=True):
    """Something that may explain the latency of a token, with the words for it."""

    kind: MarkKind
    token: int
    text: str


class ArmHead(msgspec.Struct, frozen=True):
    """All of an arm but its series.

    state     waiting, working, done, failed or cancelled
    details   figures beside the tiles, folded until they are asked for
    spoilers  sentences: what happened beside the measurement and may have spoiled it
    """

    name: str
    label: str
    state: str
    phases: list[Phase]
    verdicts: list[Verdict]
    predicted: Curve | None
    tiles: list[Tile]
    ledger: list[LedgerRow]
    prompt_tokens: int
    notes: list[str]
    details: list[Tile]
    spoilers: list[str]
    floor: FloorCurve | None = None
    marks: list[MarkPoint] = []


class Head(msgspec.Struct, frozen=True):
    """All of a run but its series. `unit`: what is timed one by one; `verdict`: A against B in a sentence."""

    title: str
    note: str
    created: float
    now_s: float
    message: str
    memory_label: str
    quiet: bool
    max_new_tokens: int
    unit: Unit
    verdict: str
    arms: list[ArmHead]


class LaneDelta(msgspec.Struct, frozen=True):
    """What lies past a viewer's cursor: tokens `first`..`n`, samples `sfirst`..`sn`, characters `cfirst`..`cn`."""

    first: int
    n: int
    t: list[float]
    lat: list[float]
    kvs: list[int]
    kvf: list[int]
    sfirst: int
    sn: int
    st: list[float]
    sm: list[int]
    cfirst: int
    cn: int
    text: str


class Delta(msgspec.Struct, frozen=True):
    """An answer to one pull. `head` is left out (null) while the viewer's version is the current one."""

    run: str
    status: str
    ended: bool
    version: int
    head: Head | None
    lanes: list[LaneDelta]


PHASE_TITLES = {
    "start": "start",
    "download": "download",
    "load": "load",
    "quantize": "quantize",
    "compile": "compile",
    "warmup": "warm up",
    "run": "run",
    "prove": "prove",
}


def three(value: float) -> str:
    """Three significant digits (19.0, 0.00123, 1,230), never in exponent form; "n/a" for what is no number."""
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return "n/a"
    rounded = f"{value:.2e}"
    return f"{float(rounded):,.{max(0, 2 - int(rounded.partition('e')[2]))}f}"


def bytes_text(size: float) -> tuple[str, str]:
    """Bytes as (value, unit) in KiB, MiB or GiB."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if abs(size) >= scale:
            return three(size / scale), unit
    return three(size / 1024), "KiB"


def seconds_text(seconds: float) -> tuple[str, str]:
    """Seconds as (value, unit) in s or ms."""
    return (three(seconds), "s") if seconds >= 1 else (three(seconds * 1e3), "ms")
