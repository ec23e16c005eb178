"""The figures of an arm, and arm A against arm B. Times in seconds, sizes in bytes.

A step is one timed unit: a token, or a forward pass of an encoder. The first token of a run is the prefill (TTFT) and
all others are decode steps; the two are never mixed, and neither includes loading or compiling. All passes of an
encoder count alike.
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from tokendyno.backend.counts import RunCounts
from tokendyno.backend.runs.statistics import (
    CONFIDENCE,
    MAX_EXPONENT,
    Estimate,
    estimate,
    mean,
    median,
    percentile,
    stdev,
    variation,
)
from tokendyno.backend.units import tells_nothing

NOISY_CV = 0.05
"""Coefficient of variation above which a figure is called noisy: the threshold of the torch.compile guide."""

LAUNCH_BOUND_SHARE = 0.75
"""GPU-busy share of a step below which the step is called launch-bound. Our choice."""

BUSY_STEPS = 64
"""GPU-busy time is profiled at the first lengths of a run, so it is divided by the latency of the run's first steps."""

MIN_ENERGY_S = 1.0
"""Shorter runs have no energy figure: the sensor refreshes every 1/6 to 1 s, depending on the GPU.
https://docs.pytorch.org/docs/stable/generated/torch.cuda.power_draw.html"""

Outcome = Literal["a_faster", "b_faster", "no_difference", "undecided", "unknown"]

SMALL = (0.97, 1.03)
"""Ratios of times between these are too small to matter. Our choice."""


class Measured(NamedTuple):
    """One run of an arm: the latency of each step, and what the worker counted."""

    latencies_s: Sequence[float]
    counts: RunCounts = RunCounts()


class Summary(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={"roofline_s": "floor_s", "roofline_share": "limit_share"},
):
    """The figures of an arm; None: not measured. Field names on the wire are those of the JSON document.

    tokens, kv_*        of the first run; for an encoder `tokens` counts passes
    runs                repeats that completed at least one step
    ttft_s              geometric mean over the runs; `ttft_interval_s`: its 95% interval, which needs 2 runs
    latency_mean_s      mean step time of a run, geometric mean over the runs; `latency_interval_s`: its 95% interval
    latency_*           median, standard deviation and percentiles over the steps of all runs
    latency_cv, run_cv  standard deviation / mean: over all steps, over the means of the runs
    tokens_per_s        steps of one sequence a second: 1 / latency_mean_s
    energy_per_token_j  energy of the whole GPU during the runs / tokens of all sequences
    gpu_busy_share      GPU-busy time of a step / latency of a step
    roofline_s          least possible seconds of the middle step on this hardware
    roofline_share      roofline_s / latency_mean_s: 1 is the roofline
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
    roofline_s: float | None = None
    roofline_share: float | None = None

    @property
    def both_s(self) -> tuple[float, ...]:
        """Of two runs the mean step time of each, from that of both and the variation; empty of any other number."""
        if self.runs != 2 or self.run_cv is None or not self.latency_mean_s:
            return ()
        share = self.run_cv / math.sqrt(2)  # how far each is from their arithmetic mean
        middle_s = self.latency_mean_s / math.sqrt(1 - share * share)
        return middle_s * (1 - share), middle_s * (1 + share)

    @property
    def launch_bound(self) -> bool | None:
        """Whether the GPU spends much of a step waiting for kernel launches; None if GPU-busy time is unknown."""
        return None if self.gpu_busy_share is None else self.gpu_busy_share < LAUNCH_BOUND_SHARE


class Comparison(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"outcome": "verdict"}):
    """Step time of A / step time of B, of many requests useful tokens a second of B / of A (above 1: B is faster):
    geometric mean over pairs of runs, with its interval.

    Faster is the arm for which the whole interval speaks. There is no difference where the whole interval is too small
    to matter, or the arms are equal; else nothing is decided. A single pair has no interval, and its outcome is
    unknown.
    """

    ratio: float
    low: float | None
    high: float | None
    confidence: float
    pairs: int
    outcome: Outcome

    @property
    def bounded(self) -> bool:
        """Whether the interval says anything: two pairs that differ a lot bound nothing."""
        return self.low is not None and self.high is not None and math.log(self.high / self.low) < MAX_EXPONENT

    @property
    def telling(self) -> bool:
        """Whether the interval is worth showing: that of two pairs may decide nothing and be wider than the ratio."""
        nothing = tells_nothing(self.pairs, self.ratio, self.low or 0, self.high or 0)
        return self.bounded and (self.decided or not nothing)

    @property
    def decided(self) -> bool:
        """Whether more pairs would change nothing that is said."""
        return self.outcome in ("a_faster", "b_faster", "no_difference")


def compare_pairs(ratios: Sequence[float], equal: bool) -> Comparison | None:
    """The comparison by the ratios of pairs of runs; None without a pair. They are averaged as logarithms, so that A
    against B is exactly the inverse of B against A. `equal`: both arms have the same plan, so that neither wins,
    whatever the interval is."""
    ratio = estimate(ratios)
    return None if ratio is None else Comparison(*ratio, CONFIDENCE, len(ratios), outcome_of(ratio, equal))


def pair_ratios(a: Sequence[Measured], b: Sequence[Measured], prefill: bool = True) -> list[float]:
    """Step time of A / step time of B in each pair of runs, over the steps that both have."""
    ratios = []
    for run_a, run_b in zip(a, b, strict=False):
        steps = min(len(run_a.latencies_s), len(run_b.latencies_s))
        a_s, b_s = (math.fsum(run.latencies_s[int(prefill) : steps]) for run in (run_a, run_b))
        if min(a_s, b_s) > 0:
            ratios.append(a_s / b_s)
    return ratios


def outcome_of(ratio: Estimate, equal: bool = False) -> Outcome:
    """Which arm is faster, by an estimate of step time of A / step time of B."""
    if ratio.low is None or ratio.high is None:
        return "unknown"
    if not (equal or ratio.bounded):
        return "undecided"
    if equal or (SMALL[0] <= ratio.low and ratio.high <= SMALL[1] and ratio.low <= 1 <= ratio.high):
        return "no_difference"
    return "b_faster" if ratio.low > 1 else "a_faster" if ratio.high < 1 else "undecided"


def summarize(
    runs: Sequence[Measured],
    batch_size: int,
    tokens: int,
    memory_bytes: Sequence[int],
    kv_last: tuple[int, int] | None,
    kv_predicted: int | None,
    prefill: bool = True,
    roofline_s: float | None = None,
) -> Summary:
    """Summarize an arm. `tokens` and `kv_last` (sliding, full) are those of its first run; without `prefill` (an
    encoder) the first latency is a step like any other."""
    runs = [run for run in runs if run.latencies_s]
    ttft = estimate([run.latencies_s[0] for run in runs]) if prefill else None
    by_run = [run.latencies_s[int(prefill) :] for run in runs]
    steps = [latency for run in by_run for latency in run]
    means = [average for run in by_run if (average := mean(run)) is not None]
    step, step_mean, step_stdev = estimate(means), mean(steps), stdev(steps)
    step_s = step.value if step else None
    steps.sort()  # once: sorting a sorted list below is cheap
    return Summary(
        tokens=tokens,
        runs=len(runs),
        ttft_s=ttft.value if ttft else None,
        ttft_interval_s=ttft.interval if ttft else None,
        latency_median_s=median(steps),
        latency_mean_s=step_s,
        latency_stdev_s=step_stdev,
        latency_p90_s=percentile(steps, 0.90),
        latency_p99_s=percentile(steps, 0.99),
        latency_cv=step_stdev / step_mean if step_stdev is not None and step_mean else None,
        run_cv=variation(means),
        latency_interval_s=step.interval if step else None,
        tokens_per_s=1 / step_s if step_s else None,
        batch_tokens_per_s=batch_size / step_s if step_s else None,
        peak_memory_bytes=max(memory_bytes, default=0) or None,
        kv_bytes=sum(kv_last) if kv_last else None,
        kv_sliding_bytes=kv_last[0] if kv_last else None,
        kv_full_bytes=kv_last[1] if kv_last else None,
        kv_predicted_bytes=kv_predicted,
        energy_per_token_j=_energy_per_token_j(runs, batch_size),
        gpu_busy_share=median([share for run in runs if (share := _busy_share(run, prefill)) is not None]),
        roofline_s=roofline_s,
        roofline_share=roofline_s / step_s if roofline_s and step_s else None,
    )


def _energy_per_token_j(runs: Sequence[Measured], batch_size: int) -> float | None:
    known = [(run.counts.machine.energy_j, run.latencies_s) for run in runs if run.counts.machine.energy_j is not None]
    if math.fsum(latency for _, latencies_s in known for latency in latencies_s) < MIN_ENERGY_S:
        return None
    steps = sum(len(latencies_s) for _, latencies_s in known)
    return math.fsum(energy_j for energy_j, _ in known) / (batch_size * steps)


def _busy_share(run: Measured, prefill: bool) -> float | None:
    first = int(prefill)
    step_s = median(run.latencies_s[first : first + BUSY_STEPS])
    busy_s = run.counts.traced.step_busy_s
    return busy_s / step_s if step_s and busy_s is not None else None
