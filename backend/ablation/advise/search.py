"""Which arm to measure next: a Gaussian process over arms, whose neighbours share choices.

The logarithm of what is wished for (seconds a token, bytes) is a sum of what each choice is worth, of what each pair of
choices is worth beside that, and of a rest of each arm. A prediction is one more feature, whose weight is learned: a
wrong one is found out. Expected improvement for each second that a trial takes chooses the next arm. (Rasmussen and
Williams, Gaussian Processes for Machine Learning, chapter 2; Jones, Schonlau and Welch, Efficient global optimization,
1998.)
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

OFFSET, CHOICE, PAIR, REST, SLOPE = 2.0, 0.35, 0.4, 0.05, 0.4
"""Standard deviations, as logarithms, before anything is measured: of the level, of what a choice is worth, a pair, an
arm by itself, and of the weight of a prediction. Where strong pairs were planted, 0.4 for pairs found 99% of the best
arms, 0.15 found 94% (tests/backend/ablation/advise/test_search.py plants them)."""

BELIEF, SERVES = 0.5, 0.1
"""Before anything is measured: the weight of a prediction, and what each choice that serves the wish gains."""

NOISE = 0.05
"""Standard deviation of the logarithm of one trial, until repeated ones say more."""

FAILED, FAILED_DEVIATION = 0.7, 0.5
"""How much worse than the others an arm that failed counts, and how surely: so that its choices are tried less."""

WORKS = 0.9
"""Probability that a choice that was never tried works here."""

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


class Search:
    """The arms of a space. `earlier`: what was measured before, in whatever space; pairs of other arms are ignored."""

    def __init__(self, arms: Sequence[Arm], earlier: Sequence[Pair] = ()) -> None:
        self.index = {arm.name: place for place, arm in enumerate(arms)}
        self.names, self._choices = [arm.name for arm in arms], {arm.name: arm.choices for arm in arms}
        features = {choice: place for place, choice in enumerate(sorted({one for arm in arms for one in arm.choices}))}
        has = np.zeros((len(arms), len(features)))
        for place, arm in enumerate(arms):
            has[place, [features[choice] for choice in arm.choices]] = 1.0
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
        self._earlier = [one for one in earlier if one.a in self.index and one.b in self.index and one.a != one.b]

    def expected(self, seen: Mapping[str, Sequence[float]], failed: Sequence[str] = ()) -> tuple[Vector, Vector]:
        """Mean and standard deviation of the logarithm of each arm. `seen`: logarithms that were measured, by arm."""
        rows, values, noise = [], [], []
        deviation = scatter(seen)
        level = sum(sum(found) / len(found) for found in seen.values()) / len(seen)
        for name, found in seen.items():
            row = np.zeros(len(self.names))
            row[self.index[name]] = 1.0
            rows.append(row)
            values.append(sum(found) / len(found) - level)
            noise.append(deviation**2 / len(found))
        for name in failed:
            row = np.zeros(len(self.names))
            row[self.index[name]] = 1.0
            rows.append(row)
            values.append(FAILED)
            noise.append(FAILED_DEVIATION**2)
        for one in self._earlier:
            row = np.zeros(len(self.names))
            row[self.index[one.a]], row[self.index[one.b]] = 1.0, -1.0
            rows.append(row)
            values.append(one.log_ratio)
            noise.append(one.deviation**2)
        look = np.array(rows)
        across = self._prior @ look.T  # covariance of arms with what was measured
        factor = np.linalg.cholesky(look @ across + np.diag(noise))
        off = np.linalg.solve(factor, np.array(values) - look @ self._mean)
        down = np.linalg.solve(factor, across.T)
        variance = np.diag(self._prior) - (down * down).sum(axis=0)
        return level + self._mean + down.T @ off, np.sqrt(np.maximum(variance, 1e-12))

    def propose(
        self,
        seen: Mapping[str, Sequence[float]],
        failed: Sequence[str],
        admissible: Sequence[str],
        costs_s: Mapping[str, float],
    ) -> str | None:
        """The unmeasured arm with the largest expected improvement for each second it takes; None where no arm is
        expected to gain `LEAST_GAIN`. `admissible`: of those measured, the ones that may win; `costs_s`: seconds of a
        trial of each arm that may be proposed."""
        mean, deviation = self.expected(seen, failed)
        worked = {choice for name in seen for choice in self._choices[name]}
        best = min((mean[self.index[name]] for name in admissible), default=math.inf)
        left = [name for name in costs_s if name not in seen]
        if not left:
            return None
        if best == math.inf:  # nothing that was measured may win: the most promising arm
            return min(left, key=lambda name: mean[self.index[name]] - deviation[self.index[name]])
        gains = {
            name: _improvement(best - mean[self.index[name]], deviation[self.index[name]])
            * WORKS ** len(self._choices[name] - worked)
            * self._chance[name]
            for name in left
        }
        if max(gains.values()) < LEAST_GAIN:
            return None
        return max(left, key=lambda name: gains[name] / costs_s[name])


def scatter(seen: Mapping[str, Sequence[float]]) -> float:
    """Standard deviation of one trial: that of repeated arms, pooled, with `NOISE` as if of four more trials."""
    squares, degrees = 4 * NOISE**2, 4
    for found in seen.values():
        middle = sum(found) / len(found)
        squares += sum((value - middle) ** 2 for value in found)
        degrees += len(found) - 1
    return math.sqrt(squares / degrees)


def _improvement(gain: float, deviation: float) -> float:
    """Expected improvement of a normal variable that is lower by `gain`."""
    z = gain / deviation
    return float(
        gain * 0.5 * (1 + math.erf(z / math.sqrt(2))) + deviation * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    )
