"""Spaces with a known best arm: choices and pairs of choices multiply the time of a token, and trials are noisy."""

import itertools
import math
from typing import NamedTuple

import numpy as np

from tokendyno.backend.ablation.advise.space import Candidate, Space
from tokendyno.backend.ablation.advise.steps import Step
from tokendyno.backend.ablation.journal import Trial


class Noise(NamedTuple):
    """Of the logarithm of a trial: standard deviation of its own and of what drifts from trial to trial (`KEPT` of it
    stays), how often somebody else's burst slows it down, and by how much on average."""

    own: float
    drift: float = 0.0
    bursts: float = 0.0
    burst: float = 0.0


KEPT = 0.9
QUIET, BUSY = Noise(0.03), Noise(0.05, 0.08, 0.15, 0.2)
"""An idle machine, and two cores on which others work: a trial is off by 14%."""

STRONG = -0.8
"""Logarithm of what one pair is worth of which neither choice gains anything alone."""


class Planted:
    """A builder of a space of 60 to 240 arms over four or five axes. `times_s`: of each arm. What is predicted is wrong
    on purpose: worse where a choice gains. `slow_s`: what a trial of an arm takes that has one of a quarter of the
    choices; others take a second."""

    def __init__(self, seed: int, noise: Noise = QUIET, slow_s: float = 1.0) -> None:
        random = self._random = np.random.default_rng(seed)
        self._noise, self._drift = noise, 0.0
        while True:
            sizes = [int(random.integers(2, 5)) for _ in range(random.integers(4, 6))]
            if 60 <= math.prod(sizes) <= 240:
                break
        choices = [(axis, choice) for axis, size in enumerate(sizes) for choice in range(1, size)]
        worth = {one: random.normal(-0.05, 0.3) if random.random() < 0.6 else 0.0 for one in choices}
        pairs = [(a, b) for a, b in itertools.combinations(choices, 2) if a[0] != b[0]]
        strong = pairs[random.integers(len(pairs))]
        worth |= {one: abs(random.normal(0.1, 0.05)) for one in strong}
        slow = np.random.default_rng(10_000 + seed)
        seconds = {one: slow_s if slow.random() < 0.25 else 1.0 for one in choices}
        beside = {pair: random.normal(0, 0.15) for pair in pairs if random.random() < 0.15} | {strong: STRONG}
        wrong = {one: random.normal(0, 0.2) - worth[one] for one in choices}
        self.times_s, self._spent_s = dict[str, float](), dict[str, float]()
        arms = {}
        for combined in itertools.product(*(range(size) for size in sizes)):
            has = [(axis, choice) for axis, choice in enumerate(combined) if choice]
            log = sum(worth[one] for one in has) + sum(gain for (a, b), gain in beside.items() if a in has and b in has)
            told = {f"axis{axis}": str(choice) for axis, choice in has}
            arm = Candidate(told, "", 1e-6 * math.exp(sum(wrong[one] for one in has)), 1 << 30)
            self.times_s[arm.name] = 0.01 * math.exp(log)
            self._spent_s[arm.name] = max([1.0, *(seconds[one] for one in has)])
            arms[arm.name] = arm
        base = arms[""]
        self.space = Space("latency", base, arms)

    def add(self, name: str) -> None:
        """Everything is there."""

    def widen(self, best: Candidate) -> int:
        """Likewise."""
        return 0

    def trial(self, step: Step, spent_s: float = 0.0, node: str = "", slower: float = 1.0) -> Trial:
        """What a trial of an arm would come to, in a place that is that much slower. `spent_s`: other than its
        own."""
        random, noise = self._random, self._noise
        self._drift = KEPT * self._drift + random.normal(0, noise.drift * math.sqrt(1 - KEPT**2))
        off = random.normal(0, noise.own) + self._drift
        if random.random() < noise.bursts:
            off += random.exponential(noise.burst)
        step_s = slower * self.times_s[step.arm.name] * math.exp(off)
        times_s = [0.1, step_s, step_s]
        return Trial(
            step.arm.name,
            step.round,
            times_s,
            0.1,
            1 << 30,
            None,
            [],
            node=node,
            spent_s=spent_s or self._spent_s[step.arm.name],
        )
