"""What a viewer gets of a run: plain columns and sentences, ready to be shown as text.

Numbers are turned into words here, once: three significant digits, a unit beside each.
"""

import math

import msgspec

from backend.records import Verdict
from backend.statistics import Summary


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


class ArmHead(msgspec.Struct, frozen=True):
    """All of an arm but its series. `state`: waiting, working, done, failed or cancelled."""

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


class Head(msgspec.Struct, frozen=True):
    """All of a run but its series."""

    title: str
    note: str
    created: float
    now_s: float
    message: str
    memory_label: str
    quiet: bool
    max_new_tokens: int
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


def tiles(s: Summary, memory_label: str, batch_size: int, repeats: int) -> list[Tile]:
    """The figures of an arm, "n/a" where there is none yet."""

    def tile(key: str, label: str, pair: tuple[str, str] | None, note: str = "") -> Tile:
        value, unit = pair or ("n/a", "")
        return Tile(key, label, value, unit, note)

    def of_s(value: float | None) -> tuple[str, str] | None:
        return None if value is None else seconds_text(value)

    def of_bytes(value: int | None) -> tuple[str, str] | None:
        return None if value is None else bytes_text(value)

    spread = "" if s.latency_stdev_s is None else f"± {' '.join(seconds_text(s.latency_stdev_s))} st. dev."
    rate = None if s.tokens_per_s is None else (three(s.tokens_per_s), "tok/s")
    batch = ""
    if batch_size > 1 and s.batch_tokens_per_s is not None:
        batch = f"batch of {batch_size}: {three(s.batch_tokens_per_s)} tok/s"
    kv_note = ""
    if s.kv_bytes is not None and s.kv_predicted_bytes:
        error = 100 * (s.kv_bytes - s.kv_predicted_bytes) / s.kv_predicted_bytes
        kv_note = "as predicted" if abs(error) < 0.05 else f"{error:+.1f}% vs predicted"
    over = f"over {repeats} repeats" if repeats > 1 else ""
    return [
        tile("ttft", "Time to first token", of_s(s.ttft_s), over and f"median {over}"),
        tile("latency_median", "Token latency, median", of_s(s.latency_median_s), over),
        tile("latency_mean", "Token latency, mean", of_s(s.latency_mean_s), spread),
        tile("rate", "Decode speed", rate, batch),
        tile("memory", "Peak memory", of_bytes(s.peak_memory_bytes), memory_label),
        tile("kv", "KV cache", of_bytes(s.kv_bytes), kv_note),
    ]
