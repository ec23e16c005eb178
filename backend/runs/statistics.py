"""Sample statistics and confidence intervals, each defined once.

Consecutive steps of a run are not independent samples: a cache grows, a clock drifts. So percentiles and deviations
over steps describe a run, while intervals come from whole runs (repeats) only.
"""

import functools
import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

CONFIDENCE = 0.95
LOOKS = 9
LOOK_ERROR = 0.0085
"""A group sequential bound: the error of Student's interval at each of the first `LOOKS` looks; at a later one, of n
values, (`LOOKS` / n)^2 times as much. An interval that is looked at after each of 2 to 50 runs then excludes the true
value at any look in at most 5% of cases, so that whoever stops as soon as it excludes 1 is wrong no more often. Found
by simulation of 400,000 series of normal values (4.1% over nine looks, 5.0% over fifty; less with heavier tails):
Pocock, Group sequential methods in the design and analysis of clinical trials, Biometrika 64, 1977."""
MIN_SAMPLES = {0.90: 64, 0.99: 662}
"""Fewest samples for a percentile, from MLPerf's early stopping (confidence 99%).
https://github.com/mlcommons/inference/blob/master/loadgen/early_stopping.cc"""

MAX_EXPONENT = 5.0
"""No end of an interval is shown further than a factor of e^5 (148) from the mean."""


# --- of a sample ----------------------------------------------------------------------------------


def median(values: Sequence[float]) -> float | None:
    """Middle value, or the mean of the two in the middle; None without values."""
    return statistics.median(values) if values else None


def mean(values: Sequence[float]) -> float | None:
    """Arithmetic mean; None without values."""
    return statistics.fmean(values) if values else None


def stdev(values: Sequence[float]) -> float | None:
    """Sample standard deviation (n - 1); None below two values. In floats: the standard library's, in fractions, gives
    the same, but took 10 ms for 2,000 steps, and a page that watches a run asks again and again."""
    if len(values) < 2:
        return None
    average = statistics.fmean(values)
    return math.sqrt(math.fsum((value - average) ** 2 for value in values) / (len(values) - 1))


def variation(values: Sequence[float]) -> float | None:
    """Coefficient of variation: standard deviation / mean. None below two values."""
    deviation, average = stdev(values), mean(values)
    return deviation / average if deviation is not None and average else None


def percentile(values: Sequence[float], share: float) -> float | None:
    """Nearest-rank percentile: the smallest value that at least `share` of all values do not exceed. None below
    `MIN_SAMPLES[share]` values."""
    if len(values) < MIN_SAMPLES[share]:
        return None
    return sorted(values)[math.ceil(share * len(values)) - 1]


# --- intervals ------------------------------------------------------------------------------------


class Estimate(NamedTuple):
    """A positive figure over several runs, and its 95% interval; None for both ends from a single run."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def bounded(self) -> bool:
        """Whether the interval was not cut off at `MAX_EXPONENT`: one that was tells nothing."""
        return self.low is not None and math.log(self.value / self.low) < MAX_EXPONENT - 1e-9

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


def estimate(values: Sequence[float]) -> Estimate | None:
    """Geometric mean of independent positive values (one for each run), with an interval of the mean of their
    logarithms that stays valid though it is looked at after each run. None without values, or if one is not positive.

    The one estimator of times, rates and ratios: its interval always holds the value, the estimate of inverses is the
    inverse of the estimate, and that of ratios of pairs the ratio of the estimates. So what is said in tokens per
    second, in seconds and as "1.5x faster" agrees.
    """
    if not values or min(values) <= 0:
        return None
    if len(values) == 1:
        return Estimate(values[0])
    logs = [math.log(value) for value in values]
    error = LOOK_ERROR * min(1.0, LOOKS / len(logs)) ** 2
    average, (low, high) = statistics.fmean(logs), interval(logs, 1 - error) or (-math.inf, math.inf)
    low, high = max(low, average - MAX_EXPONENT), min(high, average + MAX_EXPONENT)
    return Estimate(math.exp(average), math.exp(low), math.exp(high))


def t_probability(t: float, df: int) -> float:
    """P(-t < T < t) of Student's t with whole degrees of freedom: the exact finite sums of Abramowitz and Stegun,
    Handbook of Mathematical Functions, 26.7.3 and 26.7.4. (A library would cost 35 MB for these ten lines.)"""
    angle = math.atan2(t, math.sqrt(df))
    cosine = math.cos(angle)
    odd = df % 2
    term, total = cosine if odd else 1.0, 0.0
    for k in range(2 + odd, df + 1, 2):
        total += term
        term *= cosine * cosine * (k - 1) / k
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total


@functools.cache
def t_quantile(confidence: float, df: int) -> float:
    """The t with P(-t < T < t) = `confidence`, found by bisection."""
    low, high = 0.0, 1.0
    while t_probability(high, df) < confidence:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if t_probability(middle, df) < confidence else (low, middle)
    return high


def interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """Student's confidence interval of the mean of independent values (runs, not steps); None below two values."""
    deviation, average = stdev(values), mean(values)
    if deviation is None or average is None:
        return None
    half = t_quantile(confidence, len(values) - 1) * deviation / math.sqrt(len(values))
    return average - half, average + half


def positive_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """95% confidence interval of the mean of independent positive values, such as times; None below two values.

    Student's interval of the mean's logarithm, whose standard error is that of the mean / the mean (the delta method).
    So it never reaches below zero, always holds the mean, and equals `interval` where the values are close together.
    """
    deviation, average = stdev(values), mean(values)
    if deviation is None or not average or min(values) < 0:
        return None
    half = t_quantile(CONFIDENCE, len(values) - 1) * deviation / (math.sqrt(len(values)) * average)
    return average * math.exp(-half), average * math.exp(min(half, MAX_EXPONENT))
