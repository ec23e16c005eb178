"""Which arm to measure next: a Gaussian process over arms, whose neighbours share choices.

The logarithm of what is wished for (seconds a token, bytes) is a sum of what each choice is worth, of what each pair of
choices is worth beside that, and of a rest of each arm. A prediction is one more feature, whose weight is learned: a
wrong one is found out. A trial adds noise of its own, and noise that it shares with the trials just before and after it
in the same place, as on a machine that others use; how much there is of both is learned too. Expected improvement for
what a trial takes of the seconds or the runs that are left, whichever are scarcer, chooses the next arm. (Rasmussen and
Williams, Gaussian Processes for Machine Learning, chapters 2 and 5; Jones, Schonlau and Welch, Efficient global
optimization, 1998.)
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.floating[Any]]

OFFSET, CHOICE, PAIR, REST, SLOPE = 2.0, 0.35, 0.4, 0.05, 0.4
"""Standard deviations, as logarithms, before anything is measured: of the level, of what a choice is worth, a pair, an
arm by itself, and of the weight of a prediction. Where strong pairs were planted, 0.4 for pairs found 99% of the best
arms, 0.15 found 94% (tests/backend/ablation/advise/planted.py plants them)."""

BELIEF, SERVES = 0.5, 0.1
"""Before anything is measured: the weight of a prediction, and what each choice that serves the wish gains."""

NOISES = (0.02, 0.04, 0.08, 0.16, 0.32)
LIKELY_NOISE = 0.05
"""Standard deviations of a trial by itself among which the likeliest is taken; before anything is measured, twice or
half `LIKELY_NOISE` is one standard deviation away."""

DRIFTS, DRIFT_KEPT = (0.0, 1.0), 0.9
"""How many times as large the shared noise is, likewise; its correlation from one trial to the next."""

FAILED, FAILED_DEVIATION = 0.7, 0.5
"""How much worse than the others an arm that failed counts, and how surely: so that its choices are tried less."""

WORKS = 0.75
"""Probability that a choice that was never tried works here; at 0.9 arms of three untried choices came first, which say
little of each."""

LEAST_GAIN = 0.01
"""Expected improvement, as a logarithm, below which no further arm is tried."""


class Arm(NamedTuple):
    """An arm as the search sees it: its choices as axis=choice, the logarithm of what is predicted of it, how many of
    its choices serve the wish, and the chance that it may win once it was measured."""

    name: str
    choices: frozenset[str]
    predicted: float
    serving: int = 0
    chance: float = 1.0


class Pair(NamedTuple):
    """An earlier measurement of two arms: the logarithm of a / b, and its standard deviation."""

    a: str
    b: str
    log_ratio: float
    deviation: float


class Observation(NamedTuple):
    """A trial: the arm, the logarithm that it came to, and where it ran."""

    arm: str
    value: float
    place: str = ""


class Posterior:
    """What is known of the logarithm of each arm: `mean` (arms), `deviation` (arms)."""

    def __init__(self, mean: Vector, prior: Vector, explained: Vector) -> None:
        self.mean, self._prior, self._explained = mean, prior, explained  # covariance: prior - explained.T @ explained
        self.deviation = np.sqrt(np.maximum(np.diag(prior) - (explained * explained).sum(axis=0), 1e-12))

    def z_score(self, a: int, b: int) -> float:
        """By how many standard deviations of the difference arm `b` takes less than arm `a` (indices of arms)."""
        covariance = self._prior[a, b] - self._explained[:, a] @ self._explained[:, b]
        variance = self.deviation[a] ** 2 + self.deviation[b] ** 2 - 2 * covariance
        return float((self.mean[a] - self.mean[b]) / math.sqrt(max(variance, 1e-12)))


class Search:
    """A search over the arms of a space. `recorded`: what was measured before, in any space; pairs of arms that this
    one does not have are ignored."""

    def __init__(self, arms: Sequence[Arm], recorded: Sequence[Pair] = ()) -> None:
        self.index = {arm.name: row for row, arm in enumerate(arms)}
        self._choices = {arm.name: arm.choices for arm in arms}
        features = {choice: n for n, choice in enumerate(sorted({choice for arm in arms for choice in arm.choices}))}
        has = np.zeros((len(arms), len(features)))
        for row, arm in enumerate(arms):
            has[row, [features[choice] for choice in arm.choices]] = 1.0
        predicted = np.array([arm.predicted for arm in arms])
        shared = has @ has.T
        self._prior = (
            OFFSET**2
            + CHOICE**2 * shared
            + PAIR**2 * shared * (shared - 1) / 2
            + SLOPE**2 * np.outer(predicted, predicted)
            + REST**2 * np.eye(len(arms))
        )
        self._mean = BELIEF * predicted - SERVES * np.array([arm.serving for arm in arms], dtype=np.float64)
        self._chance = {arm.name: arm.chance for arm in arms}
        self._recorded = [pair for pair in recorded if {pair.a, pair.b} <= self.index.keys() and pair.a != pair.b]

    def posterior(self, observations: Sequence[Observation], failed: Sequence[str] = ()) -> Posterior:
        """What trials show of every arm. `observations`: at least one, in the order in which they ran."""
        count, level = len(observations), statistics.fmean(trial.value for trial in observations)
        rows = [({trial.arm: 1.0}, trial.value - level, 0.0) for trial in observations]
        rows += [({name: 1.0}, FAILED, FAILED_DEVIATION) for name in failed]
        rows += [({pair.a: 1.0, pair.b: -1.0}, pair.log_ratio, pair.deviation) for pair in self._recorded]
        design = np.zeros((len(rows), len(self.index)))  # (rows, arms)
        for row, (arms, _, _) in enumerate(rows):
            design[row, [self.index[name] for name in arms]] = [*arms.values()]
        cross_covariance = self._prior @ design.T  # (arms, rows)
        covariance = design @ cross_covariance + np.diag([deviation**2 for _, _, deviation in rows])
        residuals = np.array([value for _, value, _ in rows]) - design @ self._mean
        own, shared = np.zeros_like(covariance), np.zeros_like(covariance)  # noise of trials, of variance 1
        own[:count, :count] = np.eye(count)
        when, where = np.arange(count), np.array([trial.place for trial in observations])
        correlation = DRIFT_KEPT ** np.abs(np.subtract.outer(when, when))
        shared[:count, :count] = np.where(where[:, None] == where, correlation, 0.0)
        best = -math.inf
        factor: Vector = covariance
        solution: Vector = residuals
        for noise, drift in ((noise, drift) for noise in NOISES for drift in DRIFTS):
            lower = np.linalg.cholesky(covariance + noise**2 * (own + drift**2 * shared))
            solved = np.linalg.solve(lower, residuals)
            penalty = math.log2(noise / LIKELY_NOISE) ** 2 / 2
            if (log_likelihood := -solved @ solved / 2 - np.log(np.diag(lower)).sum() - penalty) > best:
                best, factor, solution = log_likelihood, lower, solved
        explained = np.linalg.solve(factor, cross_covariance.T)
        return Posterior(level + self._mean + explained.T @ solution, self._prior, explained)

    def propose(
        self, posterior: Posterior, tried: Sequence[str], admissible: Sequence[str], costs: Mapping[str, float]
    ) -> str | None:
        """The unmeasured arm with the largest expected improvement for what it costs; None where no arm is expected to
        gain `LEAST_GAIN`. `tried`: arms that were measured; `admissible`: those of them that may win; `costs`: of a
        trial of each arm that may be proposed, in any unit."""
        if not costs:
            return None
        mean, deviation = (
            {name: values[self.index[name]] for name in costs} for values in (posterior.mean, posterior.deviation)
        )
        best = min((posterior.mean[self.index[name]] for name in admissible), default=math.inf)
        if best == math.inf:  # nothing that was measured may win: the most promising arm
            return min(costs, key=lambda name: mean[name] - deviation[name])
        worked = {choice for name in tried for choice in self._choices[name]}
        gains = {
            name: _improvement(best - mean[name], deviation[name])
            * WORKS ** len(self._choices[name] - worked)
            * self._chance[name]
            for name in costs
        }
        return max(costs, key=lambda name: gains[name] / costs[name]) if max(gains.values()) >= LEAST_GAIN else None


def _improvement(gain: float, deviation: float) -> float:
    """Expected improvement of a normal variable that is lower by `gain`."""
    z = gain / deviation
    return float(
        gain * 0.5 * (1 + math.erf(z / math.sqrt(2))) + deviation * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    )
