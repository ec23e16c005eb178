"""What an ablation or a sweep has found, in a sentence: the same on the page, in a report and on the command line."""

from collections.abc import Sequence

from tokendyno.backend.ablation.result import StepResult
from tokendyno.backend.ablation.sweep import PointResult, settings_title
from tokendyno.backend.optimizations import axis_title, choice_title
from tokendyno.backend.runs.summary import Comparison
from tokendyno.backend.units import bytes_text, interval_text, seconds_text, three

ONCE = "Each ran once, so no difference can be told from noise: three rounds give intervals."
TWICE = "Each ran twice, which tells little: three rounds give intervals."


def ablation_headline(steps: Sequence[StepResult], rounds: int) -> str:
    """What all changes together are worth in time per token, then each by what it is worth alone (else where it came in
    the order of all), the largest first. "" while no pair of arms has an interval."""
    if rounds == 1:
        return ONCE if any(step.comparison for step in steps) else ""
    parts = [f"Together: {_speed(step.comparison)}" for step in steps if step.kind == "all" and _known(step)]
    for kind, how in (("alone", " alone:"), ("stair", " on top of those before:")):
        if changes := [step for step in steps if step.kind == kind and _known(step)]:
            changes.sort(key=lambda step: -step.comparison.ratio if step.comparison else 0.0)
            for step in changes:
                worse = step.quality is not None and not step.quality.gains
                but = ", but it writes worse" if worse else ""
                parts.append(f"{change_title(step.change)}{how} {_speed(step.comparison)}{but}")
            break
    return f"{'; '.join(parts)}." if parts else ""


def sweep_headline(points: Sequence[PointResult], rounds: int) -> str:
    """The points with the least time per token and with the most tokens a second, each with the points from which its
    interval does not tell it apart, and the point with the least memory. "" while fewer than two points are known."""
    if rounds <= 2:
        few = ONCE if rounds == 1 else TWICE
        return few if sum(point.latency_mean_s is not None for point in points) > 1 else ""
    known = [point for point in points if None not in (point.latency_low_s, point.latency_mean_s, point.latency_high_s)]
    if len(known) < 2:
        return ""

    def times(point: PointResult) -> tuple[float, float, float]:
        return point.latency_mean_s or 0.0, point.latency_low_s or 0.0, point.latency_high_s or 0.0

    def rates(point: PointResult) -> tuple[float, float, float]:
        return point.tokens_per_s or 0.0, point.tokens_per_s_low or 0.0, point.tokens_per_s_high or 0.0

    fastest, most = min(known, key=times), max(known, key=rates)
    near = [point for point in known if point is not fastest and times(point)[1] <= times(fastest)[2]]
    level = [point for point in known if point is not most and rates(point)[2] >= rates(most)[1]]
    least = min(known, key=lambda point: point.peak_memory_bytes or 0)
    time = interval_text(seconds_text, *times(fastest), fastest.both.get("latency_mean_s", ()))
    rate = interval_text(rate_text, *rates(most), most.both.get("tokens_per_s", ()))
    return (
        f"Least time per token: {settings_title(fastest.settings)}, {time}"
        f"{_beside(near)}. Most tokens a second: {settings_title(most.settings)}, "
        f"{rate}{_beside(level)}. Least memory: {settings_title(least.settings)}, "
        f"{' '.join(bytes_text(least.peak_memory_bytes or 0))}."
    )


def change_title(change: str) -> str:
    axis, _, choice = change.partition("=")
    return f"{axis_title(axis)}: {choice_title(axis, choice)}"


def _known(step: StepResult) -> bool:
    return step.comparison is not None and step.comparison.low is not None and not step.equal


def _speed(comparison: Comparison | None) -> str:
    assert comparison is not None and comparison.low is not None and comparison.high is not None
    interval = f"{three(comparison.low)} to {three(comparison.high)}"
    if comparison.outcome == "no_difference":
        return f"no difference ({interval}\u00d7)"
    if not comparison.decided:
        if comparison.telling:
            return f"not decided ({interval}\u00d7)"
        return f"not decided: {'two rounds tell little' if comparison.pairs == 2 else 'the pairs differ too much'}"
    return f"{three(comparison.ratio)}\u00d7 as fast ({interval})"


def _beside(points: Sequence[PointResult]) -> str:
    names = " or ".join(settings_title(point.settings) for point in points[:2])
    rest = f" and {len(points) - 2} more" if len(points) > 2 else ""
    return f" (no clear difference from {names}{rest})" if points else ""


def rate_text(tokens_per_s: float) -> tuple[str, str]:
    return three(tokens_per_s), "tok/s"
