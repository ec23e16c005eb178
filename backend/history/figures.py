"""The figures of a pinned arm, and how one compares with the same figure of another arm."""

from typing import NamedTuple

import msgspec

from tokendyno.backend.runs.quality import whole_reading
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.units import three
from tokendyno.backend.views.details import detail_rows
from tokendyno.backend.views.tiles import Tile, batch_details, batch_tiles, tiles
from tokendyno.backend.views.verdict import SAME_BYTES, less_or_more, memory_noise


class Cell(msgspec.Struct, frozen=True):
    """A value, a remark in small print, and how it compares with that of the first arm; "" where there is nothing to
    say."""

    text: str
    note: str = ""
    against: str = ""


class Figure(NamedTuple):
    """A figure in words and as a number.

    value     None where it is not set against others
    noise     the share by which it may differ without meaning
    interval  (low, high) of its mean over several runs, in the unit of `value`
    """

    label: str
    cell: Cell
    value: float | None = None
    noise: float = 0.0
    interval: tuple[float, float] | None = None

    def against(self, first: "Figure") -> str:
        """This figure against that of the first pinned arm, in words; "" where either is not known."""
        if not self.value or not first.value:
            return ""
        change = self.value / first.value - 1
        said = less_or_more(change) if abs(change) >= max(self.noise, first.noise) else ""
        if not said:
            return "the same as 1"
        words = f"{said} that of 1" if said.endswith("×") else f"{said} than 1"
        if self.interval is None or first.interval is None:
            return words
        apart = self.interval[0] > first.interval[1] or self.interval[1] < first.interval[0]
        return words if apart else f"{words}, within noise"


def figures(run: Snapshot, name: str) -> dict[str, Figure]:
    """By key, in the order in which they are shown. Those of many requests have keys of their own: waiting counts."""
    arm, traffic = run.arms[name], run.request.traffic
    if traffic is not None:
        return _batch_figures(run, name)
    s = run.summary(name)
    behind = {tile.key: tile for tile in detail_rows(run, name)}
    rate = s.latency_interval_s and (1 / s.latency_interval_s[1], 1 / s.latency_interval_s[0])
    known = {
        "ttft": (s.ttft_s, 0.0, s.ttft_interval_s),
        "latency": (s.latency_mean_s, 0.0, s.latency_interval_s),
        "rate": (s.tokens_per_s, 0.0, rate),
        "memory": (s.peak_memory_bytes, memory_noise(run), None),
        "kv": (s.kv_bytes, SAME_BYTES, None),
    }
    found = dict[str, Figure]()
    for tile in tiles(s, run.memory_label, run.request.workload.batch_size, run.unit, arm.roofline_note, arm.prefill):
        found[tile.key] = Figure(tile.label, _cell(tile), *known.get(tile.key, (None, 0.0, None)))
        if tile.key == "latency":
            found["interval"] = Figure(behind["interval"].label, _cell(behind["interval"]))
    whole = whole_reading(run)
    if whole is not None:
        read = whole.arms[name]
        cell = Cell(three(read.perplexity), f"{whole.positions:,} positions")
        found["perplexity"] = Figure("Perplexity", cell, read.perplexity)
    return found


def _batch_figures(run: Snapshot, name: str) -> dict[str, Figure]:
    arm, traffic, s = run.arms[name], run.request.traffic, run.batch_summaries[name]
    assert traffic is not None
    memory_bytes = arm.finished.peak_memory_bytes if arm.finished else None
    known = {
        "useful": (s.useful_tokens_s, 0.0),
        "ttft": (s.ttft.median_s, 0.0),
        "token": (s.token.median_s, 0.0),
        "memory": (memory_bytes, memory_noise(run)),
    }
    shown = batch_tiles(s, traffic.limits)
    shown += [tile for tile in batch_details(s, memory_bytes, run.memory_label) if tile.key == "memory"]
    return {f"batch-{t.key}": Figure(t.label, _cell(t), *known.get(t.key, (None, 0.0))) for t in shown}


def _cell(tile: Tile) -> Cell:
    return Cell(f"{tile.value} {tile.unit}".strip(), tile.note)
