"""One arm's events folded into columns."""

import msgspec
import pytest

from tests.support.runs import created, finished, tokens
from tokendyno.backend.evidence import Finding
from tokendyno.backend.messages import Progress, Started
from tokendyno.backend.predict.kv import KvPoint
from tokendyno.backend.runs.arm_series import ArmSeries, kv_at
from tokendyno.backend.runs.records import ArmEvent, Ended, Predicted, RooflinePoint
from tokendyno.backend.runs.run import Run


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
        (100, 0),
        (150, 25),
        (200, 50),
        (200, 100),
        (200, 150),
    ]
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
        (1.0, Progress("compile", "begin", 0.0, note="graph 1")),
        (3.0, Progress("compile", "step", 2.0, 0.5)),
        (4.0, Progress("compile", "end", 3.0)),
    ):
        run.append(ArmEvent("A", 0, at_s, event))
    phase = run.arms["A"].phases["compile"]
    assert (phase.state, phase.seconds, phase.fraction, phase.note) == ("end", 3.0, None, "graph 1")
    first = phase
    run.append(ArmEvent("A", 1, 9.0, Progress("compile", "begin", 1.0)))
    again = run.arms["A"].phases["compile"]
    assert again is not first
    assert (again.state, again.seconds, again.note) == ("begin", 1.0, "")


def test_the_pace_of_a_text_has_a_point_for_each_part_of_it_that_came() -> None:
    """Tokens without text (half a character) have none, nor has text that no token came with."""
    series = ArmSeries("A")
    for event in (tokens(0, 2, "ab"), tokens(2, 1), tokens(3, 0, "tail"), tokens(3, 1, "c")):
        series.take(ArmEvent("A", 0, 1.0, event))
    assert [characters for _, characters in series.pace] == [2, 7] and series.text == "abtailc"
    assert [at_s for at_s, _ in series.pace] == pytest.approx([0.2, 0.4])


def test_a_repeat_without_proofs_leaves_those_of_the_first() -> None:
    run = Run(created(arms="A", repeats=2))
    proofs = [Finding("cache", "static", "seen")]
    for repeat, findings in ((0, proofs), (1, [])):
        event = msgspec.structs.replace(finished("x"), findings=findings, extra={"energy_j": 1.0 + repeat})
        run.append(ArmEvent("A", repeat, 1.0, event))
    ended = run.arms["A"].finished
    assert ended is not None and ended.findings == proofs and ended.counts.machine.energy_j == 1.0
    late = ArmSeries("A")
    late.take(ArmEvent("A", 1, 1.0, msgspec.structs.replace(finished("x"), findings=proofs)))
    assert late.finished is None, "the first repeat is not known to have ended"


@pytest.mark.parametrize(("unit", "length"), [("token", 12), ("forward", 10)])
def test_the_roofline_of_an_encoder_is_that_of_its_prompt(unit: str, length: int) -> None:
    series = ArmSeries("A")
    series.predicted = Predicted("A", [], [RooflinePoint(0, 0.0), RooflinePoint(100, 100.0)])
    assert series.roofline_s(unit) is None, "not begun"  # type: ignore[arg-type]
    series.take(ArmEvent("A", 0, 1.0, Started(10, 1, 64, [])))
    series.take(ArmEvent("A", 0, 1.0, tokens(0, 5)))
    assert series.roofline_s(unit) == length  # type: ignore[arg-type]


def test_the_predicted_cache_is_that_after_the_newest_token() -> None:
    """Token i is made when the prompt and i tokens are in the cache."""
    series = ArmSeries("A")
    series.predicted = Predicted("A", [KvPoint(0, 0, 0), KvPoint(100, 100, 1_000)])
    series.take(ArmEvent("A", 0, 1.0, Started(10, 1, 64, [])))
    series.take(ArmEvent("A", 0, 1.0, tokens(0, 5)))
    assert series.predicted_kv_bytes() == 14 + 140


@pytest.mark.parametrize(("at_s", "seconds"), [(9.0, 6.0), (4.0, 5.0)])
def test_a_phase_that_broke_off_took_until_the_end_or_as_long_as_it_told(at_s: float, seconds: float) -> None:
    run = Run(created(arms="A"))
    run.append(ArmEvent("A", 0, 8.0, Progress("load", "step", 5.0)))
    run.append(Ended(at_s, "failed"))
    assert run.arms["A"].phases["load"].seconds == seconds
