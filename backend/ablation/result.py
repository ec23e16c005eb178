"""What each step of an ablation is worth, as one document (kind "ablation", schema 3)."""

from collections.abc import Sequence

import msgspec

from tokendyno.backend.ablation.bootstrap import memory_interval
from tokendyno.backend.ablation.journal import Cost, Journal, Trial, TrialsDocument
from tokendyno.backend.ablation.steps import Kind, Step
from tokendyno.backend.ablation.trials import Admitted
from tokendyno.backend.config import Workload
from tokendyno.backend.runs.statistics import Estimate, estimate, mean
from tokendyno.backend.runs.summary import Comparison, Measured, compare_pairs, pair_ratios


class StepResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step. What was not measured is null. What it changes, and how certain that is, comes from the same trials:
    those of rounds in which both arms ran.

    comparison    of the times per token: a ratio above 1 says that this step is faster than that one
    ttft_s, latency_mean_s, peak_memory_bytes, kv_bytes  means over the trials (`estimate`); memory is the largest
    latency_more_s     time per token more than that of the step it is compared with, by `comparison`, with its interval
    memory_more_bytes  peak memory more than that of the step it is compared with, and its bootstrap interval
    equal         whether it has the plan of the step that it is compared with, so that what differs is noise
    same_text     whether it generated the base's tokens; null where text is sampled
    also_changed  axes whose plan differs from that step's although nobody asked for it: axis -> [there, here]
    """

    kind: Kind
    change: str
    choices: dict[str, str]
    against: int | None
    trials: int
    latency_mean_s: float | None
    ttft_s: float | None
    peak_memory_bytes: int | None
    kv_bytes: int | None
    comparison: Comparison | None
    memory_more_bytes: int | None
    same_text: bool | None
    also_changed: dict[str, list[str]]
    doubtful: dict[str, str]
    refused: str
    quality: Cost | None
    latency_more_s: float | None = None
    latency_interval_s: tuple[float, float] | None = None
    memory_interval_bytes: tuple[float, float] | None = None
    equal: bool = False


class AblationDocument(TrialsDocument, frozen=True, tag="ablation"):
    """An ablation as it is now. `rounds`: as asked for; `complete`: whether every trial has run."""

    workload: Workload
    rounds: int
    complete: bool
    steps: list[StepResult]


def results(steps: Sequence[Step], admitted: Admitted, journal: Journal, greedy: bool) -> list[StepResult]:
    trials = {step.arm: journal.of(step.arm) for step in steps}
    base_ids = {trial.round: trial.ids for trial in trials[steps[0].arm]}
    found = []
    for step in steps:
        first, other = step.kind == "base", steps[step.against]
        here, there = trials[step.arm], trials[other.arm]
        same_ids = [trial.ids == base_ids[trial.round] for trial in here if trial.round in base_ids]
        pairs = [] if first else _pairs(there, here)
        equal = not first and admitted.planned[step.arm] == admitted.planned[other.arm]
        before, after = [there for there, _ in pairs], [here for _, here in pairs]
        a, b = ([Measured(trial.latency_s) for trial in paired] for paired in (before, after))
        comparison = compare_pairs(pair_ratios(a, b), equal)
        token_s, ttft = _token_s(here), estimate([trial.ttft_s for trial in here])
        more_s, interval_s = _more_s(comparison, _token_s(before))
        peak_before, peak_after = _peak(before), _peak(after)
        found.append(
            StepResult(
                kind=step.kind,
                change=step.change,
                choices=step.choices,
                against=None if first else step.against,
                trials=len(here),
                latency_mean_s=token_s.value if token_s else None,
                ttft_s=ttft.value if ttft else None,
                peak_memory_bytes=_peak(here),
                kv_bytes=here[0].kv_bytes if here else None,
                comparison=comparison,
                memory_more_bytes=None if peak_before is None or peak_after is None else peak_after - peak_before,
                same_text=all(same_ids) if greedy and same_ids else None,
                also_changed={} if first else _also_changed(step, other, admitted),
                doubtful={axis: status for trial in here for axis, status in trial.doubtful.items()},
                refused=admitted.refused.get(step.arm, ""),
                quality=journal.costs.get(step.arm),
                latency_more_s=more_s,
                latency_interval_s=interval_s,
                memory_interval_bytes=memory_interval([(a.peak_memory_bytes, b.peak_memory_bytes) for a, b in pairs]),
                equal=equal,
            )
        )
    return found


def _token_s(trials: Sequence[Trial]) -> Estimate | None:
    """Time per token, without the first of each trial."""
    return estimate([step_s for trial in trials if (step_s := mean(trial.latency_s[1:])) is not None])


def _more_s(comparison: Comparison | None, there: Estimate | None) -> tuple[float | None, tuple[float, float] | None]:
    """The ratio of a comparison as seconds more than `there`, the time of the same trials; and its interval, if
    it tells anything."""
    if comparison is None or there is None:
        return None, None
    more_s = there.value / comparison.ratio - there.value
    if comparison.low is None or comparison.high is None or not comparison.telling:
        return more_s, None
    return more_s, (there.value / comparison.high - there.value, there.value / comparison.low - there.value)


def _peak(trials: Sequence[Trial]) -> int | None:
    return max((trial.peak_memory_bytes for trial in trials), default=None)


def _pairs(there: Sequence[Trial], here: Sequence[Trial]) -> list[tuple[Trial, Trial]]:
    by_round = {trial.round: trial for trial in there}
    return [(by_round[trial.round], trial) for trial in here if trial.round in by_round]


def _also_changed(step: Step, other: Step, admitted: Admitted) -> dict[str, list[str]]:
    here, there = admitted.planned[step.arm], admitted.planned[other.arm]
    asked = {axis for axis in here if step.choices.get(axis) != other.choices.get(axis)}
    return {axis: [there[axis], here[axis]] for axis in here if here[axis] != there[axis] and axis not in asked}
