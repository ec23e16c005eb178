"""A sweep: one arm at every combination of some lengths, batch sizes and choices, as lines with intervals; of one
prompt, or of many requests."""

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from tokendyno.backend.ablation.journal import Cost, Journal, Trial, TrialsDocument
from tokendyno.backend.ablation.steps import arm_text
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import RANGES, Workload, check_range, range_text, workload_of
from tokendyno.backend.errors import InputError, shown, unknown
from tokendyno.backend.optimizations import all_axes, axis_title, choice_title, titles_text
from tokendyno.backend.runs.statistics import estimate, mean
from tokendyno.backend.traffic import Traffic
from tokendyno.backend.traffic.presets import drawn, traffic_preset, traffic_presets
from tokendyno.backend.traffic.requests import MAX_CONCURRENT, MAX_REQUESTS

PROMPT_SIZES = {"batch_size": "Batch size", "prompt_tokens": "Prompt tokens", "max_new_tokens": "New tokens"}
TRAFFIC_SIZES = {"requests": "Requests", "concurrent": "Concurrency"}
SIZE_TITLES = PROMPT_SIZES | TRAFFIC_SIZES
SIZES = tuple(SIZE_TITLES)
"""What can be swept besides axes: sizes of one prompt, or of many requests."""

_RANGES = RANGES | {"requests": (1, MAX_REQUESTS), "concurrent": (1, MAX_CONCURRENT)}

MAX_POINTS = 64

_NONE = (None, None, None)
"""No figure, and no interval."""


class Point(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An arm at its sizes, which runs once a round. `settings`: what it differs in from the other points of a sweep, in
    the order given; empty in an ablation, whose arms differ in their choices alone."""

    settings: dict[str, str]
    choices: dict[str, str]
    workload: Workload
    traffic: Traffic | None = None

    @property
    def name(self) -> str:
        """The settings as one text, else the arm: different for every point; journals keep it."""
        return ",".join(f"{name}={value}" for name, value in self.settings.items()) or self.arm

    @property
    def title(self) -> str:
        return settings_title(self.settings) if self.settings else titles_text(self.choices)

    @property
    def arm(self) -> str:
        """The choices as one text; equal for points that differ in sizes only."""
        return arm_text(self.choices)


class PointResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was measured at one point; null where nothing was.

    latency_mean_s           mean time of a decode step of a trial, geometric mean over trials (`statistics.estimate`);
                             of many requests the middle one's time per output token
    tokens_per_s             the same as tokens of all sequences a second; of many requests useful tokens a second
    ttft_s                   time to first token, likewise; of many requests the middle one's, from its arrival on
    peak_memory_bytes        the largest of all trials
    ..._low, ..._high        95% interval of each, null below two trials; of memory, the smallest of all trials
    both                     of two trials what each came to, by the field of its mean
    quality                  what its choices cost against those of the first point that can run; null for the same
                             choices, and where that was not asked for
    """

    settings: dict[str, str]
    trials: int
    latency_mean_s: float | None
    latency_low_s: float | None
    latency_high_s: float | None
    ttft_s: float | None
    ttft_low_s: float | None
    ttft_high_s: float | None
    tokens_per_s: float | None
    tokens_per_s_low: float | None
    tokens_per_s_high: float | None
    peak_memory_bytes: int | None
    peak_memory_low_bytes: int | None
    kv_bytes: int | None
    doubtful: dict[str, str]
    refused: str
    quality: Cost | None = None
    both: dict[str, list[float]] = {}


class SweepDocument(TrialsDocument, frozen=True, tag="sweep"):
    """A sweep as it is now. `over`: what was varied, and its values; `complete`: whether every trial has run;
    `traffic`: the preset that requests were drawn from, "" for one prompt, which is `workload`."""

    arm: dict[str, str]
    over: dict[str, list[str]]
    workload: Workload
    rounds: int
    complete: bool
    points: list[PointResult]
    traffic: str = ""


def title_of(name: str) -> str:
    return SIZE_TITLES.get(name) or axis_title(name)


def value_title(name: str, value: str) -> str:
    if name in SIZES:
        return f"{int(value):,}"
    return choice_title(name, value)


def settings_title(settings: Mapping[str, str]) -> str:
    """Sizes and choices as they are shown, such as "Batch size: 8, KV cache: static"."""
    return ", ".join(f"{title_of(name)}: {value_title(name, value)}" for name, value in settings.items())


def traffic_of(over: Iterable[str], given: str | None = None) -> str:
    """The preset from which a sweep over these draws its requests: the one that is given, else the first where they are
    about many requests; "" for one prompt. InputError where it is unknown."""
    of_requests = {*TRAFFIC_SIZES, *(axis.name for axis in all_axes() if axis.many_requests)}
    if given is None and not (of_requests - PROMPT_SIZES.keys()).intersection(over):  # batch_size is of both
        return ""
    return traffic_preset(given or traffic_presets()[0].name).name


def require_readings(points: Sequence[Point], traffic: str) -> None:
    """InputError where reading texts would tell nothing of these points."""
    if traffic:
        raise InputError("Quality is read with one prompt at a time, and many requests are swept. Leave it out.")
    if len({point.arm for point in points}) == 1:
        raise InputError(
            "Quality compares choices, and only sizes vary here. Sweep over a choice too, or leave it out."
        )


def plan_points(
    model: str, arm: Mapping[str, str], over: Mapping[str, Sequence[str]], work: Workload, traffic: str = ""
) -> list[Point]:
    """Every combination, the last one varying fastest. `traffic`: see `traffic_of`; of the workload then only its seed
    counts. InputError where a value is none, or there are too many."""
    axes = {axis.name for axis in all_axes()}
    for name, values in over.items():
        if name in PROMPT_SIZES and traffic:
            raise InputError(
                f"{title_of(name)} is swept of one prompt, and this sweep is of many requests. Sweep over "
                f"{' or '.join(TRAFFIC_SIZES)}, or leave out what is about many requests."
            )
        if name not in SIZES and name not in axes:
            where = f"{', '.join(SIZES)}, or an axis (tokendyno list axes)"
            raise unknown("axis or size", name, {*SIZES, *axes}, where)
        if len(values) < 2 or len(set(values)) < len(values):
            raise InputError(f"{title_of(name)} needs at least two different values, such as {_such_as(name)}.")
    count = math.prod(len(values) for values in over.values())
    if count > MAX_POINTS:
        raise InputError(f"These are {count:,} combinations; a sweep has at most {MAX_POINTS}. Sweep over fewer.")
    points = []
    for values in itertools.product(*over.values()):
        settings = dict(zip(over, values, strict=True))
        sizes: dict[str, Any] = {name: _whole(name, value) for name, value in settings.items() if name in SIZES}
        changes = {name: value for name, value in settings.items() if name not in SIZES}
        choices = dict(make_config(model, {**arm, **changes}).choices)
        if traffic:
            requests = _requests(traffic, sizes, work.seed)
            points.append(Point(settings, choices, workload_of(requests, work.seed, ignore_eos=True), requests))
        else:
            points.append(Point(settings, choices, replace(work, **sizes, repeats=1, ignore_eos=True)))
    return points


def _requests(traffic: str, sizes: Mapping[str, int], seed: int) -> Traffic:
    preset = traffic_preset(traffic)
    shape = msgspec.structs.replace(preset.draw, requests=sizes.get("requests", preset.draw.requests))
    return drawn(shape, seed, sizes.get("concurrent", preset.concurrent), limits=preset.limits)


def _such_as(name: str) -> str:
    if name in SIZES:
        return "4,12,24" if name in TRAFFIC_SIZES else "1,8,32"
    axis = next(axis for axis in all_axes() if axis.name == name)
    return ",".join(choice.name for choice in axis.choices[:3])


def _whole(name: str, text: str) -> int:
    low, high = max(1, _RANGES[name][0]), _RANGES[name][1]
    if not re.fullmatch("-?[0-9]{1,12}", text):
        raise InputError(f"{title_of(name)} is {shown(text)!r}; it must be {range_text(low, high)}.")
    check_range(title_of(name), int(text), low, high)
    return int(text)


def require_some(points: Sequence[Point], refused: Mapping[str, str]) -> None:
    """InputError if no point can run: each reason once, with the points that it forbids where there are several."""
    if len(refused) < len(points):
        return
    by_reason: dict[str, list[str]] = {}
    for point in points:
        by_reason.setdefault(refused[point.name], []).append(point.title)
    reasons = [f"{'; '.join(titles)}: {reason}" for reason, titles in by_reason.items()]
    raise InputError(f"No point can run here. {' '.join(reasons if len(by_reason) > 1 else by_reason)}")


def point_results(points: Sequence[Point], refused: Mapping[str, str], journal: Journal) -> list[PointResult]:
    return [
        _result(point, refused.get(point.name, ""), journal.of(point.name), journal.costs.get(point.arm))
        for point in points
    ]


def _result(point: Point, refused: str, trials: Sequence[Trial], quality: Cost | None) -> PointResult:
    means = [mean_s for trial in trials if (mean_s := mean(trial.latency_s[1:])) is not None]
    firsts = [trial.ttft_s for trial in trials]
    step_s, step_low_s, step_high_s = estimate(means) or _NONE
    ttft_s, ttft_low_s, ttft_high_s = estimate(firsts) or _NONE
    rates = [trial.useful_tokens_s for trial in trials if trial.useful_tokens_s]
    rates = rates or [point.workload.batch_size / mean_s for mean_s in means if mean_s]
    rate, rate_low, rate_high = estimate(rates) or _NONE
    peaks = [trial.peak_memory_bytes for trial in trials]
    values = {"latency_mean_s": means, "ttft_s": firsts, "tokens_per_s": rates}
    return PointResult(
        settings=point.settings,
        trials=len(trials),
        latency_mean_s=step_s,
        latency_low_s=step_low_s,
        latency_high_s=step_high_s,
        ttft_s=ttft_s,
        ttft_low_s=ttft_low_s,
        ttft_high_s=ttft_high_s,
        tokens_per_s=rate,
        tokens_per_s_low=rate_low,
        tokens_per_s_high=rate_high,
        peak_memory_bytes=max(peaks, default=None),
        peak_memory_low_bytes=min(peaks) if len(peaks) > 1 else None,
        kv_bytes=trials[0].kv_bytes if trials else None,
        doubtful={axis: status for trial in trials for axis, status in trial.doubtful.items()},
        refused=refused,
        quality=quality,
        both={name: two for name, two in values.items() if len(two) == 2},
    )
