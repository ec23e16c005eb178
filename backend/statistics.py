"""Every statistic of the bench, each defined once. Times in seconds.

The first token of a run is the prefill (TTFT); all others are decode steps. They are never mixed.
"""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Summary(NamedTuple):
    """What the tiles show of an arm.

    latency_*       over decode steps alone (tokens 1, 2, ...), None when there is no such step
    tokens_per_s    decode tokens of one sequence divided by the time they took
    """

    tokens: int
    ttft_s: float | None
    latency_median_s: float | None
    latency_mean_s: float | None
    latency_stdev_s: float | None
    tokens_per_s: float | None
    batch_tokens_per_s: float | None
    peak_memory_bytes: int | None
    kv_bytes: int | None
    kv_sliding_bytes: int | None
    kv_full_bytes: int | None
    kv_predicted_bytes: int | None


def median(values: Sequence[float]) -> float | None:
    """Middle value, or None of nothing."""
    return statistics.median(values) if values else None


def mean(values: Sequence[float]) -> float | None:
    """Arithmetic mean, or None of nothing."""
    return math.fsum(values) / len(values) if values else None


def stdev(values: Sequence[float]) -> float | None:
    """Sample standard deviation (n - 1), or None below two values."""
    return statistics.stdev(values) if len(values) > 1 else None


def rate_per_s(latencies_s: Sequence[float]) -> float | None:
    """Events a second from the times between them, or None of nothing."""
    total_s = math.fsum(latencies_s)
    return len(latencies_s) / total_s if total_s > 0 else None


def summarize(
    ttfts_s: Sequence[float],
    decode_latencies_s: Sequence[float],
    batch_size: int,
    tokens: int,
    memory_bytes: Sequence[int],
    kv_last: tuple[int, int] | None,
    kv_predicted: int | None,
) -> Summary:
    """Sum up an arm. With repeats, `ttfts_s` and `decode_latencies_s` hold those of every repeat;
    `tokens` and `kv_last` (sliding, full) are of the first."""
    rate = rate_per_s(decode_latencies_s)
    return Summary(
        tokens=tokens,
        ttft_s=median(ttfts_s),
        latency_median_s=median(decode_latencies_s),
        latency_mean_s=mean(decode_latencies_s),
        latency_stdev_s=stdev(decode_latencies_s),
        tokens_per_s=rate,
        batch_tokens_per_s=None if rate is None else rate * batch_size,
        peak_memory_bytes=max((m for m in memory_bytes if m), default=None),
        kv_bytes=sum(kv_last) if kv_last else None,
        kv_sliding_bytes=kv_last[0] if kv_last else None,
        kv_full_bytes=kv_last[1] if kv_last else None,
        kv_predicted_bytes=kv_predicted,
    )
