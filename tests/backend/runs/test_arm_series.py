"""One arm's events folded into columns."""

import pytest

from backend.messages import Progress
from backend.predict.kv import KvPoint
from backend.runs.arm_series import ArmSeries, kv_at
from backend.runs.records import ArmEvent, Ended
from backend.runs.run import Run
from tests.support.runs import created, finished, tokens


def test_tokens_out_of_order_are_refused() -> None:
    run = Run(created(arms="A"))
    run.append(ArmEvent("A", 0, 1.0, tokens(0, 3)))
    with pytest.raises(ValueError, match="out of order"):
        run.append(ArmEvent("A", 0, 1.0, tokens(4, 1)))


@pytest.mark.parametrize(
    ("status", "state"), [("failed", "failed"), ("interrupted", "failed"), ("cancelled", "cancelled")]
)
def test_an_end_in_mid_phase_breaks_that_phase_and_leaves_finished_and_waiting_arms_alone(
    status: str, state: str
) -> None:
    for at_work, done, waiting in (("A", "", "B"), ("B", "A", "")):
        run = Run(created())
        if done:
            run.append(ArmEvent(done, 0, 1.0, Progress("run", "begin", 0.0)))
            run.append(ArmEvent(done, 0, 2.0, Progress("run", "end", 1.0)))
            run.append(ArmEvent(done, 0, 2.0, finished("x")))
        run.append(ArmEvent(at_work, 0, 3.0, Progress("load", "begin", 0.0)))
        run.append(Ended(5.0, status))  # type: ignore[arg-type]
        phase = run.arms[at_work].phases["load"]
        assert (run.arms[at_work].state, phase.state, phase.seconds) == (state, "broken", 2.0)
        if done:
            assert run.arms[done].state == "done" and run.arms[done].phases["run"].state == "end"
        if waiting:
            assert run.arms[waiting].state == "waiting"


def test_the_predicted_curve_is_linear_between_its_corners_and_flat_outside() -> None:
    points = [KvPoint(10, 100, 0), KvPoint(20, 200, 50), KvPoint(30, 200, 150)]
    assert [kv_at(points, n) for n in (10, 15, 20, 25, 30)] == [
        (100, 0), (150, 25), (200, 50), (200, 100), (200, 150),
    ]  # fmt: skip
    assert kv_at(points, 5) == (100, 0) and kv_at(points, 99) == (200, 150)
    assert kv_at([points[0], points[0]], 10) == (100, 0), "an arm that may not grow has one corner twice"


def test_later_events_leave_a_copy_alone() -> None:
    series = ArmSeries("A")
    series.take(ArmEvent("A", 0, 1.0, Progress("run", "begin", 0.0)))
    series.take(ArmEvent("A", 0, 1.0, tokens(0, 3, "abc")))
    copied = series.copy()
    assert copied == series
    series.take(ArmEvent("A", 0, 2.0, Progress("run", "step", 1.0, 0.5)))
    series.take(ArmEvent("A", 0, 2.0, tokens(3, 1, "d")))
    series.take(ArmEvent("A", 1, 3.0, tokens(0, 2)))
    assert (copied.ids, copied.text, copied.repeats_s) == ([0, 1, 2], "abc", {0: [0.1] * 3})
    assert (copied.phases["run"].state, series.phases["run"].state) == ("begin", "step")


def test_a_phase_that_begins_again_starts_anew_and_one_that_goes_on_keeps_its_start_and_note() -> None:
    run = Run(created(arms="A"))
    for at_s, event in (
        (1.0, Progress("compile", "begin", 0.0, note="graph 1")), (3.0, Progress("compile", "step", 2.0, 0.5)),
        (4.0, Progress("compile", "end", 3.0)),
    ):  # fmt: skip
        run.append(ArmEvent("A", 0, at_s, event))
    phase = run.arms["A"].phases["compile"]
    assert (phase.state, phase.seconds, phase.fraction, phase.note) == ("end", 3.0, None, "graph 1")
    first = phase
    run.append(ArmEvent("A", 1, 9.0, Progress("compile", "begin", 1.0)))
    again = run.arms["A"].phases["compile"]
    assert again is not first
    assert (again.state, again.seconds, again.note) == ("begin", 1.0, "")


def test_a_phase_of_which_the_beginning_was_missed_is_there_all_the_same() -> None:
    run = Run(created(arms="A"))
    run.append(ArmEvent("A", 0, 5.0, Progress("load", "step", 2.0, 0.25)))
    assert run.arms["A"].phases["load"].fraction == 0.25
    assert run.arms["A"].state == "working"
