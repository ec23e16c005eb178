"""How figures follow from samples, and a verdict from figures. Nothing else decides a verdict."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from tokendyno.backend.claims.declared import Figure, Metric
from tokendyno.backend.claims.samples import Samples
from tokendyno.backend.runs.statistics import interval, mean, positive_interval

RATES: tuple[Metric, ...] = ("useful_tokens_s", "top1_agreement")
"""More of these is better; of every other metric less is."""

State = Literal["within", "overlaps", "exceeds", "outside", "missing", "shown"]
Side = Literal["", "below", "above", "both"]
Word = Literal["confirmed", "exceeded", "partly confirmed", "not decided", "not confirmed", "not tested here"]


class Bounds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A measured figure with its 95% interval: over runs, or of bytes from the least to the most. None: one run."""

    value: float
    low: float | None
    high: float | None


def bounds(figure: Figure, tests: Mapping[str, Samples]) -> Bounds | None:
    """The figure from what its tests measured; None where that is missing.

    value       of one arm
    times       A / B (of rates B / A): how many times as fast, or as small, B is
    faster      times - 1: "30% faster"
    less        1 - B / A: "30% less"
    share       B / A
    difference  A - B
    payback     compile seconds of B / seconds that it saves a token: after how many tokens they have paid back
    """
    own = _of_test(figure, tests.get(figure.test))
    if not figure.over or own is None:
        return own
    other = _of_test(figure, tests.get(figure.over))
    return None if other is None else _divided(own, other)


def _of_test(figure: Figure, arms: Samples | None) -> Bounds | None:
    if arms is None:
        return None
    a, b = (arms.get(name, {}).get(figure.metric, []) for name in ("A", "B"))
    if figure.form == "value":
        return _mean(figure.metric, a if figure.arm == "A" else b)
    if figure.form == "payback":
        return _payback(arms)
    if not a or not b:
        return None
    if figure.form == "difference":
        return _mean(figure.metric, [in_a - in_b for in_a, in_b in _pairs(a, b)])
    ratio = _ratio(figure.metric, a, b)  # of A to B
    if ratio is None:
        return None
    if figure.form == "share" or figure.metric in RATES:
        ratio = _map(ratio, lambda r: 1 / r)
    match figure.form:
        case "faster":
            return _map(ratio, lambda r: r - 1)
        case "less":
            return _map(ratio, lambda r: 1 - 1 / r)
        case _:
            return ratio


def _mean(metric: Metric, values: Sequence[float]) -> Bounds | None:
    middle = mean(values)
    if middle is None:
        return None
    if metric.endswith("_bytes"):  # counted, not timed: runs differ by what they did, not by chance
        return Bounds(middle, min(values), max(values))
    if metric == "perplexity_ratio":  # a mean over positions in the exponent
        return _geometric_mean([math.log(value) for value in values])
    return Bounds(middle, *(positive_interval(values) or interval(values) or (None, None)))


def _geometric_mean(logs: Sequence[float]) -> Bounds:
    ends = interval(logs)
    middle = math.exp(statistics.fmean(logs))
    return Bounds(middle, *([math.exp(end) for end in ends] if ends else (None, None)))


def _ratio(metric: Metric, a: Sequence[float], b: Sequence[float]) -> Bounds | None:
    """A / B over pairs of runs that followed each other, as `runs.summary.compare`; None where one is not positive."""
    pairs = _pairs(a, b)
    if any(min(pair) <= 0 for pair in pairs):
        return None
    logs = [math.log(in_a / in_b) for in_a, in_b in pairs]
    ratio = _geometric_mean(logs)
    if metric.endswith("_bytes"):
        return Bounds(ratio.value, math.exp(min(logs)), math.exp(max(logs)))
    return ratio


def _pairs(a: Sequence[float], b: Sequence[float]) -> list[tuple[float, float]]:
    """Both values of each run. A single value is the same in all runs, and stands for each of them."""
    if len(a) == 1 or len(b) == 1:
        most = max(len(a), len(b))
        a, b = (values * most if len(values) == 1 else values for values in (list(a), list(b)))
    return list(zip(a, b, strict=False))


def _payback(arms: Samples) -> Bounds | None:
    """Infinite where B saves nothing, so that its compile time never pays back."""
    cold = arms.get("B", {}).get("cold_s", [])
    pairs = _pairs(*(arms.get(name, {}).get("token_s", []) for name in ("A", "B")))
    saved = _mean("token_s", [in_a - in_b for in_a, in_b in pairs])
    if not cold or saved is None:
        return None
    value, least, most = (
        cold[0] / saved_s if saved_s is not None and saved_s > 0 else math.inf
        for saved_s in (saved.value, saved.high, saved.low)
    )
    return Bounds(value, *((None, None) if saved.low is None else (least, most)))


def _map(figure: Bounds, change: Callable[[float], float]) -> Bounds:
    ends = [change(end) for end in (figure.low, figure.high) if end is not None]
    return Bounds(change(figure.value), *((min(ends), max(ends)) if len(ends) == 2 else (None, None)))


def _divided(own: Bounds, other: Bounds) -> Bounds | None:
    """Quotient of two independent positive figures; half widths of their logarithms add up as squares."""
    if min(own.value, other.value) <= 0:
        return None
    value = own.value / other.value
    halves = [_half(own), _half(other)]
    if None in halves:
        return Bounds(value, None, None)
    half = math.hypot(*(h for h in halves if h is not None))
    return Bounds(value, value * math.exp(-half), value * math.exp(half))


def _half(figure: Bounds) -> float | None:
    if figure.low is None or figure.high is None or figure.low <= 0:
        return None
    return max(math.log(figure.high / figure.value), math.log(figure.value / figure.low))


# --- verdicts -------------------------------------------------------------------------------------


def state(figure: Figure, measured: Bounds | None) -> State:
    """A figure against the range that was claimed: its whole interval lies within, beyond it on its better side
    (exceeds) or outside otherwise; or overlaps it. A figure without an interval is never more than an overlap."""
    if not figure.decides:
        return "shown"
    if measured is None:
        return "missing"
    low, high = _range(figure)
    least, most = _ends(measured)
    if most < low or high < least:
        return "exceeds" if figure.better and figure.better == side(figure, measured) else "outside"
    return "within" if low <= least and most <= high and measured.low is not None else "overlaps"


def side(figure: Figure, measured: Bounds | None) -> Side:
    """On which side of the claimed range a figure lies, or its interval leaves the range; "" if neither."""
    if measured is None:
        return ""
    low, high = _range(figure)
    least, most = _ends(measured)
    if least < low and high < most:
        return "both"
    return "below" if least < low else "above" if high < most else ""


def _range(figure: Figure) -> tuple[float, float]:
    """To save nothing, or to be faster by nothing, is no gain: a range from 0 begins above it."""
    low = -math.inf if figure.low is None else figure.low or math.ulp(0.0)
    return low, math.inf if figure.high is None else figure.high


def _ends(measured: Bounds) -> tuple[float, float]:
    value = measured.value
    return value if measured.low is None else measured.low, value if measured.high is None else measured.high


def verdict(states: Sequence[State], partly: bool = False) -> Word:
    """Of a claim, from the states of its figures. `partly`: some choice was in effect only in part.

    confirmed         the whole interval of every figure lies within its range
    exceeded          the same, but one figure or more is better than its range
    partly confirmed  some figures are within their range or better
    not confirmed     none is, and at least one lies outside
    not decided       none is, and none lies outside: intervals reach out of their range, or there is none
    """
    decided = [state for state in states if state not in ("shown", "missing")]
    if not decided:
        return "not tested here"
    holding = [state for state in decided if state in ("within", "exceeds")]
    if not holding:
        return "not confirmed" if "outside" in decided else "not decided"
    if partly or len(holding) < sum(state != "shown" for state in states):
        return "partly confirmed"
    return "exceeded" if "exceeds" in holding else "confirmed"


def drifted(stored: Bounds, now: Bounds, drift: float) -> bool:
    """Whether a figure has left its stored interval, widened at both ends by that share of its value."""
    room = abs(stored.value) * drift if math.isfinite(stored.value) else 0.0
    low, high = _ends(stored)
    return not low - room <= now.value <= high + room
