"""Numbers as text: three significant digits, with a unit."""

import math
from collections.abc import Callable, Sequence


def plural(count: int, noun: str) -> str:
    """ "1 run", "2 runs", "1,000 passes"."""
    ending = "es" if noun.endswith(("s", "ch")) else "s"
    return f"{count:,} {noun}{'' if count == 1 else ending}"


def three(value: float) -> str:
    """Three significant digits (19.0, 0.00123, 1,230), never in exponent form; "n/a" for NaN and infinities."""
    if value == 0:
        return "0"
    if not math.isfinite(value):
        return "n/a"
    rounded = f"{value:.2e}"
    return f"{float(rounded):,.{max(0, 2 - int(rounded.partition('e')[2]))}f}"


def times(ratio: float) -> str:
    """A ratio as a factor: two digits (3.6\u00d7, 0.87\u00d7), from 10 on one decimal (10.6\u00d7), from 100 on
    none."""
    if ratio >= 100:
        return f"{ratio:,.0f}\u00d7"
    if ratio >= 1:
        return f"{ratio:.1f}\u00d7"
    return f"{ratio:.2f}\u00d7" if ratio >= 0.1 else f"{three(ratio)}\u00d7"


def bytes_text(size: float) -> tuple[str, str]:
    """Bytes as (value, unit) in KiB, MiB or GiB. From 1,000 on with all digits, lest 1,024 MiB be shown as 1,020."""
    unit, scale = "KiB", 1 << 10
    if abs(size) >= 1 << 20:
        unit, scale = ("GiB", 1 << 30) if abs(size) >= 1 << 30 else ("MiB", 1 << 20)
    value = size / scale
    return f"{value:,.0f}" if abs(value) >= 1000 else three(value), unit


def seconds_text(seconds: float) -> tuple[str, str]:
    """Seconds as (value, unit) in s or ms."""
    return (three(seconds), "s") if seconds >= 1 else (three(seconds * 1e3), "ms")


Words = Callable[[float], tuple[str, str]]
"""A number as (value, unit)."""


def tells_nothing(count: int, mean: float, low: float, high: float) -> bool:
    """Whether an interval is that of a mean of two numbers, and wider than the mean itself."""
    return count == 2 and high - low > mean


def ends_of(mean: float, low: float, high: float, both: Sequence[float] = ()) -> tuple[list[float], str]:
    """What to show beside a mean, and the word between: the ends of its interval, or the two numbers of which it is the
    mean, `both`, where the interval tells nothing."""
    return (sorted(both), "and") if tells_nothing(len(both), mean, low, high) else ([low, high], "to")


def interval_text(words: Words, value: float, low: float | None, high: float | None, both: Sequence[float] = ()) -> str:
    """A figure with what `ends_of` it, such as "29.0 ms (26.6 to 31.6)" or "5.34 ms (2 runs: 5.10 and 5.60)"; without
    that where there is none, or where both ends show the same digits."""
    shown, unit = words(value)
    text = f"{shown} {unit}".strip()
    if low is None or high is None:
        return text
    values, word = ends_of(value, low, high, both)
    ends = [words(end) for end in values]
    if ends == [(shown, unit)] * 2:
        return text
    same_unit = all(end_unit == unit for _, end_unit in ends)
    both_ends = f" {word} ".join(end if same_unit else f"{end} {end_unit}" for end, end_unit in ends)
    return f"{text} ({'2 runs: ' * (word == 'and')}{both_ends})"
