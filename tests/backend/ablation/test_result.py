"""What the steps of an ablation are worth, from trials whose figures are known."""

import pytest

from backend.ablation.journal import Heading, Journal, Trial
from backend.ablation.result import AblationDocument, StepResult, results
from backend.ablation.steps import plan_steps
from backend.ablation.trials import Admitted
from backend.cli.ablate_table import ablation_table
from backend.config import Workload
from backend.terminal import Screen

STEPS = plan_steps("pocket", {}, [("cache", "static"), ("dtype", "float32")], ("alone", "without", "stair"))
SECONDS = {"": 0.4, "cache=static": 0.2, "dtype=float32": 0.3, "cache=static,dtype=float32": 0.1}
BYTES = {"": 100, "cache=static": 120, "dtype=float32": 200, "cache=static,dtype=float32": 220}
WORK = Workload("Once upon a time")


def found(refused: str = "", other_ids: bool = False) -> list[StepResult]:
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
    base, static, single, whole, without_static, without_single, first, second = found()
    assert base.comparison is None and base.latency_median_s == pytest.approx(0.404)
    for step, ratio, more in (
        (static, 2.0, 20), (single, 0.4 / 0.3, 100), (whole, 4.0, 120), (without_static, 1 / 3, -20),
        (without_single, 0.5, -100), (first, 2.0, 20), (second, 2.0, 100),
    ):  # fmt: skip
        assert step.comparison is not None
        assert step.comparison.ratio == pytest.approx(ratio) and step.memory_more_bytes == more
        assert step.comparison.pairs == 3


def test_what_else_changed_and_what_is_in_doubt_is_named() -> None:
    _, static, single, *_ = found()
    assert static.also_changed == {"loop": ["generate", "own"]}
    assert single.doubtful == {"dtype": "partial"} and single.also_changed == {}


def test_one_round_with_another_text_is_another_text() -> None:
    _, static, single, *_ = found(other_ids=True)
    assert (static.same_text, single.same_text) == (False, True)


def test_a_refused_step_has_its_reason_and_no_figures() -> None:
    one = found(refused="dtype=float32")[2]
    assert one.refused == "It cannot." and one.comparison is None and one.latency_median_s is None
    shown = ablation_table(
        AblationDocument("ablation", 2, "pocket", "Pocket", {}, {}, WORK, 3, False, found(refused="dtype=float32")),
        Screen(),
    )
    assert "refused" in shown and "It cannot." in shown and "also changed: loop from generate to own" in shown
