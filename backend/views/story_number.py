"""The one number of a story, computed from its recording, and the small curves beside it."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from tokendyno.backend.runs.arm_series import ArmSeries
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.statistics import median
from tokendyno.backend.units import times
from tokendyno.backend.views.start import crossing

NumberKind = Literal["speed", "growth", "memory", "roofline", "pays", "useful", "graphs"]
"""What the number is, in this order: how fast B is against A, "" where that is not decided; how much more A's KV cache
grew after the prompt than B's or another model's; peak memory of B against A; B's share of the roofline; tokens from
which on waiting for B pays; useful tokens a second of B against A; graphs that were compiled for B."""

POINTS = 48
"""Points of a small curve."""


class StoryNumber(msgspec.Struct, frozen=True):
    """`figure`: the number with its unit; `curves`: of A and B, each from 0 to 1 of the larger one, "" for nothing."""

    figure: str
    curves: list[list[float]]


def story_number(run: Run, kind: NumberKind, sittings: Sequence[float], beside: Run | None) -> StoryNumber:
    """The number of a recording, "" without one; `sittings`: ratios whose median it is; `beside`: a run of another
    model, whose first arm takes the place of B."""
    now = run.snapshot()
    arms = list(now.arms.values())
    if beside is not None:
        arms = [arms[0], *list(beside.snapshot().arms.values())[:1]]
    if len(arms) != 2:
        return StoryNumber("", [])
    return StoryNumber(_figure(now, arms, kind, sittings), _curves(now, arms, kind))


def _figure(run: Snapshot, arms: Sequence[ArmSeries], kind: NumberKind, sittings: Sequence[float]) -> str:
    a, b = arms
    match kind:
        case "speed":
            comparison = run.comparison
            decided = comparison if comparison and comparison.outcome != "undecided" else None
            ratio = median(sittings) or (decided.ratio if decided else None)
            return times(ratio) if ratio else ""
        case "growth":
            grown = [sum(kv[-1] - kv[0] for kv in (arm.kv_sliding, arm.kv_full) if kv) for arm in (a, b)]
            return _less(grown[0] / grown[1]) if grown[1] else ""
        case "memory":
            peaks = [arm.finished.peak_memory_bytes if arm.finished else 0 for arm in (a, b)]
            return _less(peaks[1] / peaks[0]) if all(peaks) else ""
        case "roofline":
            share = run.summaries[b.name].roofline_share
            return f"{share:.0%}" if share else ""
        case "pays":
            lines = crossing(run)
            return lines.label.partition(" ")[0] if lines else ""
        case "useful":
            rates = [summary.useful_tokens_s for summary in run.batch_summaries.values()]
            return _less(rates[1] / rates[0]) if rates[0] and rates[1] else ""
        case "graphs":
            compiled = b.finished.compiled if b.finished else None
            return f"{len(compiled.graphs) if compiled else 0}"


def _less(share: float) -> str:
    return ("\u2212" if share < 1 else "+") + f"{abs(share - 1):.0%}"


def _curves(run: Snapshot, arms: Sequence[ArmSeries], kind: NumberKind) -> list[list[float]]:
    """What the number is about: bytes that the KV cache has grown by, or tokens over time."""
    lines: list[list[float]] = []
    for arm in arms:
        if run.request.traffic is not None:
            lines.append([])
        elif kind == "growth":
            sizes = [s + f for s, f in zip(arm.kv_sliding, arm.kv_full, strict=True)]
            lines.append([float(size - sizes[0]) for size in sizes])
        else:
            lines.append(list(arm.latency_s[1:]))
    top = max((value for line in lines for value in line), default=0.0)
    if top <= 0:
        return []
    return [[round(value / top, 3) for value in _thinned(line)] for line in lines]


def _thinned(line: Sequence[float]) -> list[float]:
    """Medians of equal parts, so that a spike of one step does not make the curve."""
    size = max(1, len(line) // POINTS)
    return [median(line[at : at + size]) or 0.0 for at in range(0, len(line) - size + 1, size)]
