"""The figures of an arm in words, of three significant digits, "n/a" where nothing is known: its tiles."""

import msgspec

from tokendyno.backend.messages import WaitReason
from tokendyno.backend.runs.batch_summary import BatchSummary, Spread
from tokendyno.backend.runs.records import PrefillBound, Unit
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.statistics import MIN_SAMPLES
from tokendyno.backend.runs.summary import Summary
from tokendyno.backend.traffic import Limits
from tokendyno.backend.units import bytes_text, seconds_text, three


class Tile(msgspec.Struct, frozen=True):
    """A figure with its unit, and a note in small print."""

    key: str
    label: str
    value: str
    unit: str
    note: str = ""


Figure = tuple[str, str]
"""A value and its unit."""


def tile(key: str, label: str, figure: Figure | None, note: str = "") -> Tile:
    value, unit = figure or ("n/a", "")
    return Tile(key, label, value, unit, note)


def of_unit(value: float | None, unit: str) -> Figure | None:
    return None if value is None else (three(value), unit)


def in_seconds(value: float | None) -> Figure | None:
    return None if value is None else seconds_text(value)


def joined(seconds: float) -> str:
    return " ".join(seconds_text(seconds))


def step_word(unit: Unit) -> str:
    return "token" if unit == "token" else "forward pass"


def compiling_sentence(run: Snapshot) -> str:
    """What of the times per token compiling in the middle of a run took, "" for nothing."""
    took = [
        f"{joined(arm.compiling_s)} a {step_word(run.unit)} in arm {arm.name}"
        for arm in run.arms.values()
        if arm.compiling_s
    ]
    return f"This includes compiling during the runs: {' and '.join(took)}." if took else ""


def percentile_tile(key: str, label: str, share: float, value_s: float | None, samples: str) -> Tile:
    """A percentile of seconds, or how many samples it needs. `samples`: what these are."""
    note = "" if value_s is not None else f"needs {MIN_SAMPLES[share]} {samples}"
    return tile(key, f"{label}, {100 * share:.0f}th percentile", in_seconds(value_s), note)


def in_bytes(value: float | None) -> Figure | None:
    return None if value is None else bytes_text(value)


def in_percent(share: float | None) -> Figure | None:
    return None if share is None else (three(100 * share), "%")


def tiles(
    summary: Summary,
    memory_label: str,
    batch_size: int,
    unit: Unit = "token",
    roofline_note: str = "",
    prefill: PrefillBound | None = None,
    compiling_s: float = 0.0,
) -> list[Tile]:
    """The figures of an arm, "n/a" where there is none yet. `compiling_s`: of the mean step."""
    over = f"mean over {summary.runs} runs" if summary.runs > 1 else ""
    p90 = "" if summary.latency_p90_s is None else f"p90 {joined(summary.latency_p90_s)}"
    p90 = f"{joined(compiling_s)} of it compiling" if compiling_s else p90
    latency = tile("latency", f"Time per {step_word(unit)}, mean", in_seconds(summary.latency_mean_s), p90)
    bounded = summary.roofline_s is not None or not roofline_note  # a bound may come, or is known not to
    share = [tile("share", "% of roofline", in_percent(summary.roofline_share), roofline_note)] if bounded else []
    memory = tile("memory", "Peak memory", in_bytes(summary.peak_memory_bytes), memory_label)
    if unit == "forward":
        rate = of_unit(summary.batch_tokens_per_s, "sequences/s")
        batch = f"batch of {batch_size}" if batch_size > 1 else ""
        return [latency, tile("rate", "Throughput", rate, batch), *share, memory]
    batch = ""
    if batch_size > 1 and summary.batch_tokens_per_s is not None:
        batch = f"{three(summary.batch_tokens_per_s)} tok/s in the batch of {batch_size}"
    return [
        tile("ttft", "Time to first token", in_seconds(summary.ttft_s), _against_bound(summary, over, prefill)),
        latency,
        tile(
            "rate", f"Decode speed{' per sequence' * (batch_size > 1)}", of_unit(summary.tokens_per_s, "tok/s"), batch
        ),
        *share,
        memory,
        tile("kv", "KV cache", in_bytes(summary.kv_bytes), _against_prediction(summary)),
    ]


def _against_bound(summary: Summary, note: str, prefill: PrefillBound | None) -> str:
    """The note, and what share of the time to first token the hardware needs at least."""
    if prefill is None or not summary.ttft_s:
        return note
    share = "".join(in_percent(prefill.seconds / summary.ttft_s) or ())
    return ", ".join(filter(None, [note, f"{share} of its {prefill.limited_by} bound"]))


def _against_prediction(summary: Summary) -> str:
    if summary.kv_bytes is None or not summary.kv_predicted_bytes:
        return ""
    error = 100 * (summary.kv_bytes - summary.kv_predicted_bytes) / summary.kv_predicted_bytes
    return "as predicted" if abs(error) < 0.05 else f"{error:+.1f}% vs predicted"


def arm_tiles(run: Snapshot, name: str) -> list[Tile]:
    arm, traffic = run.arms[name], run.request.traffic
    predicted = arm.predicted
    if traffic is not None:
        return batch_tiles(run.batch_summaries[name], traffic.limits)
    size = run.request.workload.batch_size
    note, prefill = predicted.roofline_note, predicted.prefill
    return tiles(run.summaries[name], run.memory_label, size, run.unit, note, prefill, arm.compiling_s)


# --- many requests ----------------------------------------------------------------------------------

WAIT_TEXTS: dict[WaitReason, str] = {
    "batch": "the static batch before it",
    "pages": "free pages",
    "tokens": "the token budget of a step",
    "requests": "the cap on requests in work",
    "margin": "the safety margin of free pages",
    "reads": "the limit of cached tokens that a step reads",
}
"""What a request waited for, after the word "for"."""


def batch_tiles(summary: BatchSummary, limits: Limits) -> list[Tile]:
    within = "set a limit" if summary.good is None else f"{summary.good} of {summary.requests} within {_limits(limits)}"
    return [
        tile("useful", "Useful tokens", of_unit(summary.useful_tokens_s, "tok/s"), "padding not counted"),
        tile(
            "ttft",
            "Time to first token, median",
            in_seconds(summary.ttft.median_s),
            _percentiles(summary.ttft) or "waiting counted",
        ),
        tile("token", "Time per output token, median", in_seconds(summary.token.median_s), _percentiles(summary.token)),
        tile("request", "End to end, median", in_seconds(summary.request.median_s), _percentiles(summary.request)),
        tile("goodput", "Goodput", of_unit(summary.goodput_s, "req/s"), within),
        tile("busy", "Slots at useful work", in_percent(summary.busy_share), "of slots in all steps"),
    ]


def batch_details(summary: BatchSummary, memory_bytes: int | None, memory_label: str) -> list[Tile]:
    wasted_steps = summary.slot_steps - summary.busy_steps
    waste = summary.padding_tokens / summary.positions if summary.positions else None
    held, cache_bytes = summary.held_peak_bytes, summary.cache_bytes
    in_use = held / cache_bytes if held is not None and cache_bytes else None
    each = "" if summary.step_mean_s is None else f"mean {joined(summary.step_mean_s)}"
    cache = "" if cache_bytes is None else f"of {' '.join(bytes_text(cache_bytes))}"
    return [
        tile("served", "Requests served", (f"{summary.served:,}", f"of {summary.requests:,}")),
        tile("tokens", "Useful tokens", (f"{summary.tokens:,}", "tokens")),
        tile("wall", "Time to serve them", in_seconds(summary.wall_s)),
        tile("steps", "Steps", (f"{summary.steps:,}", "steps"), each),
        *_spread_rows("ttft", "Time to first token", summary.ttft),
        *_spread_rows("token", "Time per output token", summary.token),
        *_spread_rows("request", "End to end", summary.request),
        tile("idle", "Slot-steps without useful work", (f"{wasted_steps:,}", f"of {summary.slot_steps:,}"),
              f"{summary.idle_steps:,} held by a request that had ended" if summary.idle_steps else ""),
        tile("padding", "Padding", (f"{summary.padding_tokens:,}", "positions"),
              "" if waste is None else f"{three(100 * waste)}% of all that were processed"),
        tile("held", "Paged KV cache held at most", in_percent(in_use), cache or "no pages"),
        *[
            tile(f"wait_{reason}", f"Waited for {WAIT_TEXTS[reason]}", (f"{number:,}", "requests"))
            for reason, number in summary.waited.items()
        ],
        tile("memory", "Peak memory", in_bytes(memory_bytes), memory_label),
    ]  # fmt: skip


def _spread_rows(key: str, label: str, spread: Spread) -> list[Tile]:
    shares = ((0.90, spread.p90_s), (0.99, spread.p99_s))
    return [percentile_tile(f"{key}_{100 * share:.0f}", label, share, value, "requests") for share, value in shares]


def _percentiles(spread: Spread) -> str:
    percentiles = ((90, spread.p90_s), (99, spread.p99_s))
    return ", ".join(f"p{share} {joined(seconds)}" for share, seconds in percentiles if seconds is not None)


def _limits(limits: Limits) -> str:
    named = (("TTFT", limits.ttft_s), ("token", limits.token_s), ("request", limits.request_s))
    return ", ".join(f"{name} {joined(limit_s)}" for name, limit_s in named if limit_s)
