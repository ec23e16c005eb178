"""The bar of a whole run: its parts, what is done now, and how long it still goes."""

from typing import Literal

import msgspec
import pytest

from tests.support.runs import arm_records, created, ended
from tokendyno.backend.messages import Amount, PhaseName, Progress
from tokendyno.backend.runs.arm_series import Phase
from tokendyno.backend.runs.quality import Gate
from tokendyno.backend.runs.records import ArmEvent, Expected
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.phases import UNKNOWN, PhaseBar, duration, phase_bar, wait_text

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
    made = phase_bar(run.snapshot(), now_s, UNREAD)
    assert made is not None
    return made


def texts(made: PhaseBar) -> dict[str, str]:
    return {part.text: part.state for part in made.parts}


def test_before_anything_is_known_the_bar_says_so_and_what_is_done() -> None:
    run = begun()
    assert [part.state for part in bar(run, 0.0).parts] == ["waiting"] * 4
    run.append(progress("A", 1.0, "load", 1.0))
    run.append(progress("B", 1.0, "compile", note="graph 1"))
    shown = bar(run, 4.0)
    assert texts(shown) == {
        "B: compile, graph 1": "now",
        "up to 9 pairs": "waiting",
        "proof": "waiting",
        "quality": "waiting",
    }
    assert (shown.parts[0].spent_s, shown.left_s, shown.most_s) == (4.0, None, None)
    assert shown.rule == "rule: until decided, at most 9 pairs or 60 s"


def test_earlier_runs_tell_what_is_left() -> None:
    run = begun()
    for arm in "AB":
        run.append(Expected(arm, {"load": 1.0, "compile": 5.0, "warmup": 1.0}, {"run": 4.0, "prove": 0.5}))
    run.append(progress("A", 1.0, "load", 1.0))
    run.append(progress("A", 1.0, "compile"))
    shown = bar(run, 3.0)  # 2 of 5 s of compiling are over; the earlier run read no texts
    assert shown.left_s == (3 + 1) + (1 + 5 + 1) + 8 + 1
    assert [(part.name, part.expected_s) for part in shown.parts] == [("ready", 14.0), ("pairs", 8.0), ("proof", 1.0)]


def test_the_first_pair_tells_how_long_pairs_take_at_most() -> None:
    run = begun()
    for record in [*arm_records("A", 9), *arm_records("B", 9)]:
        run.append(record)
    shown = bar(run, 3.0)
    assert shown.left_s is None and shown.most_s == 9 * 2.0 - shown.parts[-3].spent_s


def test_a_run_of_workers_that_were_kept_began_with_its_first_pair() -> None:
    """They have no phase but their runs, of which the newest is kept."""
    run = begun()
    for number, (repeat, arm) in enumerate([(0, "A"), (0, "B"), (1, "B"), (1, "A")]):
        run.append(ArmEvent(arm, repeat, 4.0 * number, Progress("run", "begin", 0.0)))
        run.append(ArmEvent(arm, repeat, 4.0 * number + 4.0, Progress("run", "end", 4.0)))
    assert bar(run, 16.0).spent_s == 16.0
    run.append(ended())
    assert (bar(run, 99.0).label, bar(run, 99.0).spent_s) == ("Done in 16 s", 16.0)


def test_a_reading_that_was_stopped_is_not_shown_as_done() -> None:
    run = begun()
    for record in [*arm_records("A", 2), *arm_records("B", 2)]:
        run.append(record)
    run.append(progress("A", 20.0, "prove", 1.0))
    run.append(progress("A", 21.0, "quality"))
    run.append(progress("A", 25.0, "quality", 4.0))
    run.append(ended("cancelled", "Stopped."))
    states = texts(bar(run, 30.0))
    assert states["proof"] == "done" and states["quality"] == "waiting"


def test_a_run_that_is_over_says_how_long_it_took_and_drops_what_was_not_done() -> None:
    run = begun()
    run.append(progress("A", 0.5, "load", 0.5))
    for record in [*arm_records("A", 9), *arm_records("B", 9)]:
        run.append(record)
    run.append(ended("cancelled", "Stopped."))
    shown = bar(run, 1_000.0)
    assert shown.label.startswith("Stopped after ") and shown.spent_s < 10
    assert set(texts(shown).values()) == {"done"} and "1 pair, not decided, 2.0 s" in texts(shown)
    empty = begun()
    empty.append(ended("failed", "No."))
    assert phase_bar(empty.snapshot(), 5.0, None) is None


# --- what to expect of a phase ---------------------------------------------------------------------

MIB = 1 << 20


def phase(name: PhaseName, state: str = "step", amount: Amount | None = None) -> Phase:
    return Phase(name, state, 0.0, 3.0, None, "", amount)


@pytest.mark.parametrize(
    ("step", "expected_s", "says"),
    [
        (phase("compile"), {"compile": 61.3}, "about 61 s expected"),
        (phase("compile"), {}, UNKNOWN),
        (phase("compile", "end"), {}, ""),
        (phase("compile", "end"), {"compile": 61.3}, ""),
        (phase("warmup"), {}, ""),
        (phase("warmup"), {"warmup": 0.3}, ""),
        (phase("warmup"), {"warmup": 4.2}, "about 4.2 s expected"),
        (
            phase("download", amount=Amount(300 * MIB, 15_000 * MIB, 85 * MIB)),
            {},
            "300 MiB of 14.6 GiB, 85.0 MiB/s, 2 min 53 s left",
        ),
        (phase("download", amount=Amount(30 * MIB, 90 * MIB, 0.0)), {}, "30.0 of 90.0 MiB, 0 KiB/s"),
        (phase("download", amount=Amount(30 * MIB, None, 2 * MIB)), {}, "30.0 MiB, 2.00 MiB/s"),
        (phase("download", "end", Amount(90 * MIB, 90 * MIB, 2 * MIB)), {}, "90.0 MiB"),
        (phase("download", "end", Amount(0, 0)), {}, ""),  # all of it was here
        (phase("load", amount=Amount(30 * MIB, 90 * MIB)), {"load": 12.0}, "30.0 of 90.0 MiB, about 12 s expected"),
    ],
)
def test_the_words(step: Phase, expected_s: dict[PhaseName, float], says: str) -> None:
    assert wait_text(step, expected_s) == says


def test_durations_are_in_the_units_that_one_waits_in() -> None:
    assert [duration(s) for s in (0.4213, 8.06, 61.3, 165, 180, 4_830)] == [
        "0.421 s",
        "8.1 s",
        "61 s",
        "2 min 45 s",
        "3 min",
        "1 h 20 min",
    ]
