"""Every statistic of the bench, each defined once. Times in seconds.

A step is what is timed one by one: a token, or a forward pass of an encoder. The first token of a run is the prefill
(TTFT), all others are decode steps, and the two are never mixed; seconds of loading and compiling are in neither.
An encoder's passes are all alike.

Consecutive steps are no independent samples: a cache grows, a clock drifts. So percentiles and deviations over steps
describe a run, and intervals are made from whole runs (repeats) alone.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

CONFIDENCE = 0.95
FLOORS = {0.90: 64, 0.99: 662}
"""Fewest samples for a percentile: those of MLPerf's early stopping (confidence 99%).
https://github.com/mlcommons/inference/blob/master/loadgen/early_stopping.cc"""

UNSTEADY = 0.05
"""Coefficient of variation above which a figure is called unsteady: the warning of the torch.compile guide."""

LAUNCH_BOUND = 0.75
"""Share of a step's time in which the GPU works, below which the step is called launch-bound. Our choice."""

BUSY_STEPS = 64
"""The GPU's work is profiled at the first few lengths of a run, so it is compared with the run's first steps."""

LEAST_ENERGY_S = 1.0
"""Shorter runs have no energy: the sensor looks once in 1/6 to 1 s, by product.
https://docs.pytorch.org/docs/stable/generated/torch.cuda.power_draw.html"""

Verdict = Literal["a_faster", "b_faster", "no_difference", "unknown"]


class Measured(NamedTuple):
    """One run of an arm: the latency of each step, and what the worker noted of it (`Finished.extra`)."""

    latencies_s: Sequence[float]
    extra: Mapping[str, float] = {}


class Summary(NamedTuple):
    """The figures of an arm; None is what was not measured.

    tokens, kv_*        of the first run; `tokens` are passes for an encoder
    runs                repeats that have made a step
    ttft_s              median over the runs; `ttft_interval_s`: (low, high) of its mean
    latency_*           over the steps of all runs
    latency_interval_s  95% (Student's t) of the mean time of a step, from the means of the runs; at least 2
    latency_cv, run_cv  standard deviation / mean: over all steps, over the means of the runs
    tokens_per_s        steps of one sequence divided by the time they took
    energy_per_token_j  energy of the whole GPU during the runs / tokens of all sequences
    gpu_busy_share      time that the GPU works on a step / time of a step
    floor_s             least time a step could take on this hardware, at the middle step of a run
    limit_share         floor_s / latency_median_s: 1 is the hardware's limit
    """

    tokens: int
    runs: int
    ttft_s: float | None
    ttft_interval_s: tuple[float, float] | None
    latency_median_s: float | None
    latency_mean_s: float | None
    latency_stdev_s: float | None
    latency_p90_s: float | None
    latency_p99_s: float | None
    latency_cv: float | None
    run_cv: float | None
    latency_interval_s: tuple[float, float] | None
    tokens_per_s: float | None
    batch_tokens_per_s: float | None
    peak_memory_bytes: int | None
    kv_bytes: int | None
    kv_sliding_bytes: int | None
    kv_full_bytes: int | None
    kv_predicted_bytes: int | None
    energy_per_token_j: float | None
    gpu_busy_share: float | None
    floor_s: float | None = None
    limit_share: float | None = None

    @property
    def launch_bound(self) -> bool | None:
        """Whether the GPU mostly waits for the host; None where its share is not known."""
        return None if self.gpu_busy_share is None else self.gpu_busy_share < LAUNCH_BOUND


class Comparison(NamedTuple):
    """Time of a step of A divided by that of B (above 1: B is faster): geometric mean over pairs of runs, with its
    interval. No difference was found where the interval holds 1; a single pair has none, and tells nothing."""

    ratio: float
    low: float | None
    high: float | None
    confidence: float
    pairs: int
    verdict: Verdict


# --- of a sample ----------------------------------------------------------------------------------


def median(values: Sequence[float]) -> float | None:
    """Middle value, or the mean of the two in the middle; None of nothing."""
    ordered, half = sorted(values), len(values) // 2
    if not ordered:
        return None
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def mean(values: Sequence[float]) -> float | None:
    """Arithmetic mean, or None of nothing."""
    return math.fsum(values) / len(values) if values else None


def stdev(values: Sequence[float]) -> float | None:
    """Sample standard deviation (n - 1), or None below two values."""
    if len(values) < 2:
        return None
    middle = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1))


def variation(values: Sequence[float]) -> float | None:
    """Coefficient of variation: standard deviation / mean. None below two values."""
    spread, middle = stdev(values), mean(values)
    return spread / middle if spread is not None and middle else None


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least `share` of all reach up to (nearest rank); None below its floor."""
    if len(values) < FLOORS[share]:
        return None
    return sorted(values)[math.ceil(round(share * len(values), 9)) - 1]


def rate_per_s(latencies_s: Sequence[float]) -> float | None:
    """Events a second from the times between them, or None of nothing."""
    total_s = math.fsum(latencies_s)
    return len(latencies_s) / total_s if total_s > 0 else None


# --- intervals ------------------------------------------------------------------------------------


def t_probability(t: float, df: int) -> float:
    """P(-t < T < t) of Student's t with whole degrees of freedom: the exact finite sums of Abramowitz and Stegun,
    Handbook of Mathematical Functions, 26.7.3 and 26.7.4. (A library would bring 35 MB for these ten lines.)"""
    angle = math.atan2(t, math.sqrt(df))
    cosine = math.cos(angle)
    odd = df % 2
    term, total = (cosine, cosine) if odd else (1.0, 1.0)
    for k in range(3 if odd else 2, df - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    if not odd:
        return math.sin(angle) * total
    return 2 / math.pi * (angle + (math.sin(angle) * total if df > 1 else 0.0))


@functools.cache
def t_quantile(confidence: float, df: int) -> float:
    """The t with P(-t < T < t) = `confidence`, by bisection."""
    low, high = 0.0, 1.0
    while t_probability(high, df) < confidence:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if t_probability(middle, df) < confidence else (low, middle)
    return high


def interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """Student's confidence interval of the mean of independent values (runs, not steps); None below two."""
    spread, middle = stdev(values), mean(values)
    if spread is None or middle is None:
        return None
    half = t_quantile(confidence, len(values) - 1) * spread / math.sqrt(len(values))
    return middle - half, middle + half


# --- of runs --------------------------------------------------------------------------------------


def compare(a: Sequence[Measured], b: Sequence[Measured], prefill: bool = True) -> Comparison | None:
    """A against B, pair by pair of runs that followed each other; None without a pair.

    Where one stopped earlier, only the steps that both made count. Ratios are averaged as logarithms, so that A
    against B is exactly the inverse of B against A.
    """
    logs = []
    for one, other in zip(a, b, strict=False):
        both = min(len(one.latencies_s), len(other.latencies_s))
        times = [math.fsum(run.latencies_s[int(prefill) : both]) for run in (one, other)]
        if min(times) > 0:
            logs.append(math.log(times[0] / times[1]))
    if not logs:
        return None
    ratio, found = math.exp(math.fsum(logs) / len(logs)), interval(logs)
    if found is None:
        return Comparison(ratio, None, None, CONFIDENCE, len(logs), "unknown")
    low, high = (math.exp(end) for end in found)
    verdict: Verdict = "b_faster" if low > 1 else "a_faster" if high < 1 else "no_difference"
    return Comparison(ratio, low, high, CONFIDENCE, len(logs), verdict)


def summarize(
    runs: Sequence[Measured],
    batch_size: int,
    tokens: int,
    memory_bytes: Sequence[int],
    kv_last: tuple[int, int] | None,
    kv_predicted: int | None,
    prefill: bool = True,
    floor_s: float | None = None,
) -> Summary:
    """Sum up an arm. `tokens` and `kv_last` (sliding, full) are of its first run; without `prefill` (an encoder) the
    first latency is a step like the others."""
    runs = [run for run in runs if run.latencies_s]
    firsts = [run.latencies_s[0] for run in runs] if prefill else []
    by_run = [run.latencies_s[int(prefill) :] for run in runs]
    steps = [latency for run in by_run for latency in run]
    means = [found for run in by_run if (found := mean(run)) is not None]
    rate, middle, spread = rate_per_s(steps), mean(steps), stdev(steps)
    steps.sort()  # once: what sorts again below finds it done
    return Summary(
        tokens=tokens,
        runs=len(runs),
        ttft_s=median(firsts),
        ttft_interval_s=interval(firsts),
        latency_median_s=median(steps),
        latency_mean_s=middle,
        latency_stdev_s=spread,
        latency_p90_s=percentile(steps, 0.90),
        latency_p99_s=percentile(steps, 0.99),
        latency_cv=spread / middle if spread is not None and middle else None,
        run_cv=variation(means),
        latency_interval_s=interval(means),
        tokens_per_s=rate,
        batch_tokens_per_s=None if rate is None else rate * batch_size,
        peak_memory_bytes=max((m for m in memory_bytes if m), default=None),
        kv_bytes=sum(kv_last) if kv_last else None,
        kv_sliding_bytes=kv_last[0] if kv_last else None,
        kv_full_bytes=kv_last[1] if kv_last else None,
        kv_predicted_bytes=kv_predicted,
        energy_per_token_j=_energy_per_token_j(runs, batch_size),
        gpu_busy_share=median([share for run in runs if (share := _busy_share(run, prefill)) is not None]),
        floor_s=floor_s,
        limit_share=floor_s / latency_s if floor_s and (latency_s := median(steps)) else None,
    )


def _energy_per_token_j(runs: Sequence[Measured], batch_size: int) -> float | None:
    known = [run for run in runs if "energy_j" in run.extra]
    if math.fsum(latency for run in known for latency in run.latencies_s) < LEAST_ENERGY_S:
        return None
    return math.fsum(run.extra["energy_j"] for run in known) / (batch_size * sum(len(run.latencies_s) for run in known))


def _busy_share(run: Measured, prefill: bool) -> float | None:
    first = int(prefill)
    step_s = median(run.latencies_s[first : first + BUSY_STEPS])
    return run.extra["step_busy_s"] / step_s if step_s and "step_busy_s" in run.extra else None
