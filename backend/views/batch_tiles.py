"""The figures of many requests in words: tiles, B's against A's, and the detail rows behind them."""

from collections.abc import Mapping

from tokendyno.backend.messages import WaitReason
from tokendyno.backend.runs.batch_summary import BatchSummary, Spread
from tokendyno.backend.runs.statistics import MIN_SAMPLES
from tokendyno.backend.runs.summary import Comparison
from tokendyno.backend.traffic import Limits
from tokendyno.backend.units import bytes_text, three
from tokendyno.backend.views.differences import Difference
from tokendyno.backend.views.tile import Tile, in_percent, in_seconds, joined, of_unit, tile
from tokendyno.backend.views.verdict import less_or_more

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
        tile("useful", "Useful tokens", of_unit(s.useful_tokens_s, "tok/s"), "padding not counted"),
        tile(
            "ttft",
            "Time to first token, median",
            in_seconds(s.ttft.median_s),
            _percentiles(s.ttft) or "waiting counted",
        ),
        tile("token", "Time per output token, median", in_seconds(s.token.median_s), _percentiles(s.token)),
        tile("request", "End to end, median", in_seconds(s.request.median_s), _percentiles(s.request)),
        tile("goodput", "Goodput", of_unit(s.goodput_s, "req/s"), within),
        tile("busy", "Slots at useful work", in_percent(s.busy_share), "of slots in all steps"),
    ]


def batch_differences(a: BatchSummary, b: BatchSummary, compared: Comparison | None) -> Mapping[str, Difference]:
    """B against A, by the key of the tile. Figures of one run tell no noise, so only the ratio is called better."""
    ahead = {"a_faster": "A", "b_faster": "B"}.get(compared.outcome, "") if compared else ""
    pairs = {
        "useful": (1.0, compared.ratio if compared else None),
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
            better = "B" if key == "busy" and text and other > one else ahead if key == "useful" else ""
            found[key] = Difference(f"B {text}" if text else "B the same", better)
    return found


def batch_details(s: BatchSummary, memory_bytes: int | None, memory_label: str) -> list[Tile]:
    """What stands behind the tiles."""
    waste = s.padding_tokens / s.positions if s.positions else None
    held = None if s.held_peak_bytes is None or not s.cache_bytes else s.held_peak_bytes / s.cache_bytes
    each = "" if s.step_mean_s is None else f"mean {joined(s.step_mean_s)}"
    of = "" if s.cache_bytes is None else f"of {' '.join(bytes_text(s.cache_bytes))}"
    return [
        tile("served", "Requests served", (f"{s.served:,}", f"of {s.requests:,}")),
        tile("tokens", "Useful tokens", (f"{s.tokens:,}", "tokens")),
        tile("wall", "Time to serve them", in_seconds(s.wall_s)),
        tile("steps", "Steps", (f"{s.steps:,}", "steps"), each),
        *_spread_rows("ttft", "Time to first token", s.ttft),
        *_spread_rows("token", "Time per output token", s.token),
        *_spread_rows("request", "End to end", s.request),
        tile("idle", "Slot-steps without useful work", (f"{s.slot_steps - s.busy_steps:,}", f"of {s.slot_steps:,}"),
              f"{s.idle_steps:,} held by a request that had ended" if s.idle_steps else ""),
        tile("padding", "Padding", (f"{s.padding_tokens:,}", "positions"),
              "" if waste is None else f"{three(100 * waste)}% of all that were processed"),
        tile("held", "Paged KV cache held at most", in_percent(held), of or "no pages"),
        *[
            tile(f"wait_{reason}", f"Waited for {WAIT_TEXTS[reason]}", (f"{number:,}", "requests"))
            for reason, number in s.waited.items()
        ],
        tile("memory", "Peak memory", None if memory_bytes is None else bytes_text(memory_bytes), memory_label),
    ]  # fmt: skip


def _spread_rows(key: str, label: str, found: Spread) -> list[Tile]:
    return [
        tile(
            f"{key}_{100 * share:.0f}",
            f"{label}, {100 * share:.0f}th percentile",
            in_seconds(value),
            "" if value is not None else f"needs {MIN_SAMPLES[share]} requests",
        )
        for share, value in ((0.90, found.p90_s), (0.99, found.p99_s))
    ]


def _percentiles(found: Spread) -> str:
    known = ((90, found.p90_s), (99, found.p99_s))
    return ", ".join(f"p{share} {joined(value)}" for share, value in known if value is not None)


def _limits(limits: Limits) -> str:
    named = (("TTFT", limits.ttft_s), ("token", limits.token_s), ("request", limits.request_s))
    return ", ".join(f"{name} {joined(limit_s)}" for name, limit_s in named if limit_s)
