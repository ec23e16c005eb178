"""Pairs of runs until they decide: what is called faster or slower must be so, though it is looked at after every pair.

The noise is that of shipped recordings of two cores and of a GPU: each run of a press is a stretch of one, so that it
drifts as that did. 2,000 seeded presses for each difference.
"""

import itertools
import random

import pytest

from tokendyno.backend.config import LEAST_PAIRS, MOST_PAIRS
from tokendyno.backend.recordings.recorded_runs import shipped_id, shipped_records
from tokendyno.backend.runs.run import folded
from tokendyno.backend.runs.statistics import Estimate, estimate
from tokendyno.backend.runs.summary import Outcome, outcome_of

PRESSES = 2_000
SEED = 20_261_127
STEPS = 48
"""Of a run."""


def press(rng: random.Random, sums: list[float], ratio: float) -> tuple[Outcome, Estimate]:
    """One press of Run where B is `ratio` times as fast. `sums`: of the latencies of a recording up to each step."""

    def run_s() -> float:
        at = rng.randrange(len(sums) - STEPS)
        return sums[at + STEPS] - sums[at]

    ratios: list[float] = []
    while True:
        ratios.append(run_s() / run_s() * ratio)
        estimated = estimate(ratios)
        assert estimated is not None
        outcome = outcome_of(estimated)
        if len(ratios) >= LEAST_PAIRS and (outcome != "undecided" or len(ratios) == MOST_PAIRS):
            return outcome, estimated


@pytest.mark.parametrize("recording", ["smollm2", "graphs-alone"])
@pytest.mark.parametrize("ratio", [1.0, 1.02, 1.05, 1.1, 1.5])
def test_a_press_is_seldom_wrong(recording: str, ratio: float) -> None:
    latencies_s = folded(shipped_records(shipped_id(recording))).arms["A"].latency_s[1:]
    sums, rng = [0.0, *itertools.accumulate(latencies_s)], random.Random(SEED)
    presses = [press(rng, sums, ratio) for _ in range(PRESSES)]
    wrong = sum(outcome == "a_faster" or (outcome == "b_faster" and ratio == 1) for outcome, _ in presses)
    inside = sum(low is not None and high is not None and low <= ratio <= high for _, (_, low, high) in presses)
    assert wrong <= 0.05 * PRESSES
    assert inside >= 0.95 * PRESSES
    if ratio >= 1.5:
        assert sum(outcome == "b_faster" for outcome, _ in presses) >= 0.95 * PRESSES, "what is clear is said"
