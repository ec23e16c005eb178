"""What an ablation or a sweep has found, in a sentence: the same on the page, in a report and on the command line."""

from collections.abc import Sequence

from tokendyno.backend.ablation.result import StepResult
from tokendyno.backend.ablation.sweep import PointResult, settings_title
from tokendyno.backend.optimizations import axis_title, choice_title
from tokendyno.backend.runs.summary import Comparison
from tokendyno.backend.units import bytes_text, interval_text, seconds_text, three


def ablation_headline(steps: Sequence[StepResult]) -> str:
    """What all changes together are worth in time per token, then each by what it is worth alone (else where it came in
    the order of all), the largest first. "" while no pair of arms has an interval."""
    said = [f"Together {_speed(step.comparison)}" for step in steps if step.kind == "all" and _known(step)]
    for kind, how in (("alone", " alone"), ("stair", " on top of those before")):
        known = [step for step in steps if step.kind == kind and _known(step)]
        if not known:
            continue
        known.sort(key=lambda step: -step.comparison.ratio if step.comparison else 0.0)
        said += [f"{change_title(step.change)}{how} {_speed(step.comparison)}{_but(step)}" for step in known]
        break
    return f"{'; '.join(said)}." if said else ""


def sweep_headline(points: Sequence[PointResult]) -> str:
    """The points with the least time per token and with the most tokens a second, each with those from which its
    interval does not tell it, and the one with the least memory. "" while fewer than two points are known."""
    steps = [point for point in points if None not in (point.latency_low_s, point.latency_mean_s, point.latency_high_s)]
    if len(steps) < 2:
        return ""

    def times(point: PointResult) -> tuple[float, float, float]:
        return point.latency_mean_s or 0.0, point.latency_low_s or 0.0, point.latency_high_s or 0.0

    def rates(point: PointResult) -> tuple[float, float, float]:
        return point.tokens_per_s or 0.0, point.tokens_per_s_low or 0.0, point.tokens_per_s_high or 0.0

    fastest, most = min(steps, key=times), max(steps, key=rates)
    near = [one for one in steps if one is not fastest and times(one)[1] <= times(fastest)[2]]
    level = [one for one in steps if one is not most and rates(one)[2] >= rates(most)[1]]
    least = min(steps, key=lambda one: one.peak_memory_bytes or 0)
    return (
        f"Least time per token: {settings_title(fastest.settings)}, {interval_text(seconds_text, *times(fastest))}"
        f"{_beside(near)}. Most tokens a second: {settings_title(most.settings)}, "
        f"{interval_text(_rate, *rates(most))}{_beside(level)}. Least memory: {settings_title(least.settings)}, "
        f"{' '.join(bytes_text(least.peak_memory_bytes or 0))}."
    )


def change_title(change: str) -> str:
    """An axis=choice by the titles of both."""
    axis, _, choice = change.partition("=")
    return f"{axis_title(axis)}: {choice_title(axis, choice)}"


def _known(step: StepResult) -> bool:
    return step.comparison is not None and step.comparison.low is not None and not step.equal


def _speed(found: Comparison | None) -> str:
    assert found is not None and found.low is not None and found.high is not None
    interval = f"{three(found.low)} to {three(found.high)}"
    if found.low <= 1 <= found.high:
        return f"no difference found ({interval}\u00d7)"
    return f"{three(found.ratio)}\u00d7 as fast ({interval})"


def _but(step: StepResult) -> str:
    """What keeps a gain from counting."""
    return ", but it writes worse" if step.quality is not None and not step.quality.gains else ""


def _beside(others: Sequence[PointResult]) -> str:
    names = " or ".join(settings_title(one.settings) for one in others[:2])
    more = f" and {len(others) - 2} more" if len(others) > 2 else ""
    return f" (no clear difference from {names}{more})" if others else ""


def _rate(value: float) -> tuple[str, str]:
    return three(value), "tok/s"
