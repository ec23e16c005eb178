"""Advice finds the best arm of spaces whose best arm is known."""

from typing import Any

import pytest

from tests.backend.ablation.advise.planted import BUSY, QUIET, Noise, Planted
from tokendyno.backend.ablation.advise.steps import Steps
from tokendyno.backend.ablation.advise.wishes import Limits
from tokendyno.backend.ablation.journal import Confirmed, Heading, Journal
from tokendyno.backend.config import Workload
from tokendyno.backend.runs.summary import SMALL

NONE = Limits()


def advised(planted: Planted, journal: Journal, budget_s: float, limits: Limits = NONE) -> Steps:
    """Seek advice in a planted space."""
    builder: Any = planted
    steps = Steps(builder, journal, "latency", limits, reads=False)
    while units := steps.units(budget_s):
        step = units[0][0]
        journal.add(Confirmed(step.arm.name, "run", 1.0) if step.kind == "confirm" else planted.trial(step))
    return steps


def test_a_wish_that_nothing_meets_ends_with_what_came_nearest() -> None:
    planted, journal = Planted(1), memory()
    steps = advised(planted, journal, 30, Limits(latency_s=1e-9))
    assert journal.confirmed is None and steps.standing().leader is None and len(journal.trials) > 10
    best = min(journal.trials.values(), key=lambda trial: trial.latency_s[1]).arm
    assert planted.times_s[best] <= 1.2 * min(planted.times_s.values())


def memory() -> Journal:
    """A journal without a file."""
    return Journal(None, Heading("pocket", {}, [], ["advise"], Workload("?")))


ENOUGH = {QUIET: SMALL[1], BUSY: 1.1}
"""How many times the time of the best arm an advised one may take."""


@pytest.mark.parametrize(
    ("seeds", "noise"), [(12, QUIET), *(pytest.param(200, noise, marks=pytest.mark.full) for noise in (QUIET, BUSY))]
)
def test_finds_the_best_of_planted_spaces_in_a_third_of_the_runs(seeds: int, noise: Noise) -> None:
    """However long the budget is, though the prediction is wrong, a pair decides, and what is slow to try may be best:
    in 95 of 100, with at most a third of one run of every arm. A trial is one run, the last measurement two."""
    found, share = 0, 0.0
    for seed in range(seeds):
        planted, journal = Planted(seed, noise, slow_s=8.0), memory()
        advised(planted, journal, 1e6)
        assert journal.confirmed is not None
        found += planted.times_s[journal.confirmed.arm] <= ENOUGH[noise] * min(planted.times_s.values())
        share = max(share, (len(journal.trials) + 2) / len(planted.times_s))
    print(f"{found} of {seeds} found, with at most {share:.3f} of the runs")
    assert found >= 0.95 * seeds - 0.5 and share <= 1 / 3


def test_what_is_begun_ends_within_the_budget_with_the_last_measurement() -> None:
    """Though trials take longer the more choices an arm has, and the last one what both arms and two pairs take."""
    for budget_s in (16, 25, 36):
        planted, journal = Planted(2), memory()
        builder: Any = planted
        steps = Steps(builder, journal, "latency", NONE, reads=False)
        while units := steps.units(budget_s):
            ((step, *_), *_) = units
            if step.kind == "confirm":
                journal.add(Confirmed(step.arm.name, "run", steps.durations.confirm_s(step.arm, 1)))
            else:
                journal.add(planted.trial(step, spent_s=1.0 + 0.1 * len(step.arm.choices)))
        assert journal.confirmed is not None and 0.5 * budget_s < steps.spent_s <= budget_s
    journal = memory()
    steps = advised(planted, journal, 1.5)
    assert len(journal.trials) == 1 and steps.standing().leader == "", "a second trial would not have ended in time"


def test_in_several_places_rounds_are_compared_in_one_and_the_best_is_found_though_one_is_slower() -> None:
    planted, journal, places = Planted(5), memory(), 3
    builder: Any = planted
    steps, widths = Steps(builder, journal, "latency", NONE, reads=False), set[int]()
    steps.places = places
    while units := steps.units(30):
        widths.add(len(units))
        for place, unit in enumerate(units):
            for step in unit:
                if step.kind == "confirm":
                    journal.add(Confirmed(step.arm.name, "run", 2.0))
                else:
                    journal.add(planted.trial(step, 1 / places, f"node {place}", 1.0 + 0.04 * place))
    assert max(widths) == places and steps.spent_s <= 30
    assert journal.confirmed is not None
    assert planted.times_s[journal.confirmed.arm] <= SMALL[1] * min(planted.times_s.values())
    nodes = dict[int, set[str]]()
    for trial in journal.trials.values():
        nodes.setdefault(trial.round, set()).add(trial.node)
    once = {trial.node: trial.arm for trial in journal.trials.values() if len(steps.trials(trial.arm)) == 1}
    assert len(once) == places and steps.ratio(once["node 0"], once["node 1"]) is None
    assert max(nodes) >= places and all(len(nodes[number]) == 1 for number in nodes if number >= places)
