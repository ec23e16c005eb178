"""The bar of a whole run: its parts, what is done now, and how long it still goes."""

from typing import Literal

import msgspec

from tests.support.runs import arm_records, created, ended
from tokendyno.backend.messages import PhaseName, Progress
from tokendyno.backend.runs.quality import Gate
from tokendyno.backend.runs.records import ArmEvent, Expected
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.phases import PhaseBar, phase_bar

UNREAD = Gate("unread")


def progress(arm: str, at_s: float, phase: PhaseName, seconds: float | None = None, note: str = "") -> ArmEvent:
    """A phase begins, or ends after so many seconds."""
    state: Literal["begin", "end"] = "begin" if seconds is None else "end"
    return ArmEvent(arm, 0, at_s, Progress(phase, state, seconds or 0.0, None, note))


def begun() -> Run:
    """Two arms between which pairs decide."""
    first = created(repeats=9)
    return Run(msgspec.structs.replace(first, request=msgspec.structs.replace(first.request, until_s=60.0, reading=[])))


def bar(run: Run, now_s: float) -> PhaseBar:
    found = phase_bar(run.snapshot(), now_s, UNREAD)
    assert found is not None
    return found


def texts(found: PhaseBar) -> dict[str, str]:
    return {part.text: part.state for part in found.parts}


def test_before_anything_is_known_the_bar_says_so_and_what_is_done() -> None:
    run = begun()
    assert [part.state for part in bar(run, 0.0).parts] == ["waiting"] * 4
    run.append(progress("A", 1.0, "load", 1.0))
    run.append(progress("B", 1.0, "compile", note="graph 1"))
    found = bar(run, 4.0)
    assert texts(found) == {
        "B: compile, graph 1": "now",
        "up to 9 pairs": "waiting",
        "proof": "waiting",
        "quality": "waiting",
    }
    assert (found.parts[0].spent_s, found.left_s, found.most_s) == (4.0, None, None)
    assert found.rule == "rule: until decided, at most 9 pairs or 60 s"


def test_earlier_runs_tell_what_is_left() -> None:
    run = begun()
    for arm in "AB":
        run.append(Expected(arm, {"load": 1.0, "compile": 5.0, "warmup": 1.0}, {"run": 4.0, "prove": 0.5}))
    run.append(progress("A", 1.0, "load", 1.0))
    run.append(progress("A", 1.0, "compile"))
    found = bar(run, 3.0)  # 2 of 5 s of compiling are over; the earlier run read no texts
    assert found.left_s == (3 + 1) + (1 + 5 + 1) + 8 + 1
    assert [(part.name, part.expected_s) for part in found.parts] == [("ready", 14.0), ("pairs", 8.0), ("proof", 1.0)]


def test_the_first_pair_tells_how_long_pairs_take_at_most() -> None:
    run = begun()
    for record in [*arm_records("A", 9), *arm_records("B", 9)]:
        run.append(record)
    found = bar(run, 3.0)
    assert found.left_s is None and found.most_s == 9 * 2.0 - found.parts[-3].spent_s


def test_a_run_that_is_over_says_how_long_it_took_and_drops_what_was_not_done() -> None:
    run = begun()
    run.append(progress("A", 0.5, "load", 0.5))
    for record in [*arm_records("A", 9), *arm_records("B", 9)]:
        run.append(record)
    run.append(ended("cancelled", "Stopped."))
    found = bar(run, 1_000.0)
    assert found.label.startswith("Stopped after ") and found.spent_s < 10
    assert set(texts(found).values()) == {"done"} and "1 pair, not decided, 2.0 s" in texts(found)
    empty = begun()
    empty.append(ended("failed", "No."))
    assert phase_bar(empty.snapshot(), 5.0, None) is None
