"""What the steps of an ablation are worth, from trials whose figures are known."""

import pytest

from tests.support.command_line import text_of
from tokendyno.backend.ablation.journal import Heading, Journal, Trial
from tokendyno.backend.ablation.result import AblationDocument, StepResult, results
from tokendyno.backend.ablation.steps import plan_steps
from tokendyno.backend.ablation.trials import Admitted
from tokendyno.backend.cli.ablate import ablation_blocks
from tokendyno.backend.config import Workload

STEPS = plan_steps("pocket", {}, [("cache", "static"), ("dtype", "float32")], ("alone", "without", "stair"))
SECONDS = {"": 0.4, "cache=static": 0.2, "dtype=float32": 0.3, "cache=static,dtype=float32": 0.1}
BYTES = {"": 100, "cache=static": 120, "dtype=float32": 200, "cache=static,dtype=float32": 220}
WORK = Workload("Once upon a time")


def step_results(refused: str = "", other_ids: bool = False) -> list[StepResult]:
    journal = Journal(None, Heading("pocket", {}, [], [], WORK, "cpu", {}))
    for arm, seconds in SECONDS.items():
        for number in range(3):
            ids = [1, 9] if other_ids and arm == "cache=static" and number == 2 else [1, 2]
            steps = [0.9, seconds * (1 + number / 100), seconds * (1 + number / 100)]
            doubtful = {"dtype": "partial"} if arm == "dtype=float32" else {}
            if arm != refused or not arm:
                journal.add(Trial(arm, number, steps, 0.9, BYTES[arm], 7, ids, doubtful))
    planned = {arm: {"cache": "dynamic", "dtype": "bfloat16", "loop": "generate"} for arm in SECONDS}
    planned["cache=static"]["cache"] = "static"
    planned["cache=static"]["loop"] = "own"
    admitted = Admitted(planned, {}, {refused: "It cannot."} if refused else {})
    return results(STEPS, admitted, journal, greedy=True)


def test_each_step_is_compared_with_the_one_it_names() -> None:
    base, static, single, whole, without_static, without_single, first, second = step_results()
    assert base.comparison is None and base.latency_mean_s == pytest.approx(0.404, rel=1e-3)
    for step, ratio, more in (
        (static, 2.0, 20),
        (single, 0.4 / 0.3, 100),
        (whole, 4.0, 120),
        (without_static, 1 / 3, -20),
        (without_single, 0.5, -100),
        (first, 2.0, 20),
        (second, 2.0, 100),
    ):
        assert step.comparison is not None
        assert step.comparison.ratio == pytest.approx(ratio) and step.memory_more_bytes == more
        assert step.comparison.pairs == 3


def test_stopped_early_a_change_and_its_interval_come_from_the_same_rounds() -> None:
    """The base has three rounds, the last of which was slow and large; the step has two."""
    journal = Journal(None, Heading("pocket", {}, [], [], WORK, "cpu", {}))
    for number, (step_s, size) in enumerate(((0.40, 100), (0.41, 104), (0.90, 190))):
        journal.add(Trial("", number, [0.9, step_s], 0.9, size, 7, [1, 2], {}))
        if number < 2:
            journal.add(Trial("cache=static", number, [0.9, step_s / 2], 0.9, size + 120 + 4 * number, 7, [1, 2], {}))
    steps = plan_steps("pocket", {}, [("cache", "static")], ("alone",))
    planned = {step.arm: {"cache": step.arm} for step in steps}
    _, static = results(steps, Admitted(planned, {}, {}), journal, greedy=True)
    for more, ends in (
        (static.latency_more_s, static.latency_interval_s),
        (static.memory_more_bytes, static.memory_interval_bytes),
    ):
        assert more is not None and ends is not None and ends[0] <= more <= ends[1]
    assert static.memory_more_bytes == 124 and static.latency_more_s == pytest.approx(-0.2025, rel=1e-3)
    assert static.comparison is not None and static.comparison.pairs == 2


def test_a_change_that_comes_to_the_same_plan_gains_nothing() -> None:
    journal = Journal(None, Heading("pocket", {}, [], [], WORK, "cpu", {}))
    for number in range(3):
        for arm, step_s in (("", 0.4), ("dtype=float32", 0.2)):
            journal.add(Trial(arm, number, [0.9, step_s * (1 + number / 100)], 0.9, 100, 7, [1, 2], {}))
    steps = plan_steps("pocket", {}, [("dtype", "float32")], ("alone",))
    _, same = results(steps, Admitted({step.arm: {"dtype": "float32"} for step in steps}, {}, {}), journal, greedy=True)
    assert same.equal and same.comparison is not None and same.comparison.outcome == "no_difference"
    assert not step_results()[1].equal


def test_what_else_changed_and_what_is_in_doubt_is_named() -> None:
    _, static, single, *_ = step_results()
    assert static.also_changed == {"loop": ["generate", "own"]}
    assert single.doubtful == {"dtype": "partial"} and single.also_changed == {}


def test_one_round_with_another_text_is_another_text() -> None:
    _, static, single, *_ = step_results(other_ids=True)
    assert (static.same_text, single.same_text) == (False, True)


def test_a_refused_step_has_its_reason_and_no_figures() -> None:
    steps = step_results(refused="dtype=float32")
    assert (steps[2].refused, steps[2].comparison, steps[2].latency_mean_s) == ("It cannot.", None, None)
    document = AblationDocument(3, "pocket", "Pocket", {}, {}, WORK, 3, False, steps)
    shown = text_of(ablation_blocks(document))
    assert "refused" in shown and "It cannot." in shown and "also changed: loop from generate to own" in shown
