"""The figures of many requests in words: tiles, B's against A's, and the detail rows behind them."""

from collections.abc import Mapping

from backend.messages import WaitReason
from backend.runs.batch_summary import BatchSummary, Spread
from backend.runs.statistics import MIN_SAMPLES
from backend.traffic import Limits
from backend.units import bytes_text, seconds_text, three
from backend.views.differences import Difference
from backend.views.tiles import Tile
from backend.views.verdict import less_or_more

Pair = tuple[str, str]

WAIT_TEXTS: dict[WaitReason, str] = {
    "batch": "the static batch before it",
    "pages": "free pages",
    "tokens": "the token budget of a step",
    "requests": "the cap on requests in work",
    "margin": "the safety margin of free pages",
    "reads": "the limit of cached tokens that a step reads",
}
"""What a request waited for, after the word "for"."""


def batch_tiles(s: BatchSummary, limits: Limits) -> list[Tile]:
    """The tiles of an arm, "n/a" where nothing is known yet."""
    within = "set a limit" if s.good is None else f"{s.good} of {s.requests} within {_limits(limits)}"
    return [
        _tile("useful", "Useful tokens", _of(s.useful_tokens_s, "tok/s"), "padding not counted"),
        _tile("ttft", "Time to first token, median", _s(s.ttft.median_s), _percentiles(s.ttft) or "waiting counted"),
        _tile("token", "Time per output token, median", _s(s.token.median_s), _percentiles(s.token)),
        _tile("request", "End to end, median", _s(s.request.median_s), _percentiles(s.request)),
        _tile("goodput", "Goodput", _of(s.goodput_s, "requests/s"), within),
        _tile("busy", "Slots at useful work", _percent(s.busy_share), "of slots in all steps"),
    ]


def batch_differences(a: BatchSummary, b: BatchSummary) -> Mapping[str, Difference]:
    """B against A, by the key of the tile. One run of each tells no noise, so no time is called better; the work of
    slots is counted, not timed."""
    pairs = {
        "useful": (a.useful_tokens_s, b.useful_tokens_s),
        "ttft": (a.ttft.median_s, b.ttft.median_s),
        "token": (a.token.median_s, b.token.median_s),
        "request": (a.request.median_s, b.request.median_s),
        "goodput": (a.goodput_s, b.goodput_s),
        "busy": (a.busy_share, b.busy_share),
    }
    found = {}
    for key, (one, other) in pairs.items():
        if one and other is not None:
            text = less_or_more(other / one - 1)
            better = "B" if key == "busy" and text and other > one else ""
            found[key] = Difference(f"B {text}" if text else "B the same", better)
    return found


def batch_details(s: BatchSummary, memory_bytes: int | None, memory_label: str) -> list[Tile]:
    """What stands behind the tiles."""
    waste = s.padding_tokens / s.positions if s.positions else None
    held = None if s.held_peak_bytes is None or not s.cache_bytes else s.held_peak_bytes / s.cache_bytes
    each = "" if s.step_mean_s is None else f"mean {_joined(s.step_mean_s)}"
    of = "" if s.cache_bytes is None else f"of {' '.join(bytes_text(s.cache_bytes))}"
    return [
        _tile("served", "Requests served", (f"{s.served:,}", f"of {s.requests:,}")),
        _tile("tokens", "Useful tokens", (f"{s.tokens:,}", "tokens")),
        _tile("wall", "Time to serve them", _s(s.wall_s)),
        _tile("steps", "Steps", (f"{s.steps:,}", "steps"), each),
        *_spread_rows("ttft", "Time to first token", s.ttft),
        *_spread_rows("token", "Time per output token", s.token),
        *_spread_rows("request", "End to end", s.request),
        _tile("idle", "Slot-steps without useful work", (f"{s.slot_steps - s.busy_steps:,}", f"of {s.slot_steps:,}"),
              f"{s.idle_steps:,} held by a request that had ended" if s.idle_steps else ""),
        _tile("padding", "Padding", (f"{s.padding_tokens:,}", "positions"),
              "" if waste is None else f"{three(100 * waste)}% of all that were processed"),
        _tile("held", "Paged KV cache held at most", _percent(held), of or "no pages"),
        *[
            _tile(f"wait_{reason}", f"Waited for {WAIT_TEXTS[reason]}", (f"{number:,}", "requests"))
            for reason, number in s.waited.items()
        ],
        _tile("memory", "Peak memory", None if memory_bytes is None else bytes_text(memory_bytes), memory_label),
    ]  # fmt: skip


def _spread_rows(key: str, label: str, found: Spread) -> list[Tile]:
    return [
        _tile(f"{key}_{100 * share:.0f}", f"{label}, {100 * share:.0f}th percentile", _s(value),
              "" if value is not None else f"needs {MIN_SAMPLES[share]} requests")
        for share, value in ((0.90, found.p90_s), (0.99, found.p99_s))
    ]  # fmt: skip


def _percentiles(found: Spread) -> str:
    known = ((90, found.p90_s), (99, found.p99_s))
    return ", ".join(f"p{share} {_joined(value)}" for share, value in known if value is not None)


def _limits(limits: Limits) -> str:
    named = (("TTFT", limits.ttft_s), ("token", limits.token_s), ("request", limits.request_s))
    return ", ".join(f"{name} {_joined(limit_s)}" for name, limit_s in named if limit_s)


def _tile(key: str, label: str, pair: Pair | None, note: str = "") -> Tile:
    value, unit = pair or ("n/a", "")
    return Tile(key, label, value, unit, note)


def _of(value: float | None, unit: str) -> Pair | None:
    return None if value is None else (three(value), unit)


def _s(value: float | None) -> Pair | None:
    return None if value is None else seconds_text(value)


def _percent(share: float | None) -> Pair | None:
    return None if share is None else (three(100 * share), "%")


def _joined(seconds: float) -> str:
    return " ".join(seconds_text(seconds))
