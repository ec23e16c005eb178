"""What is said while a run goes on, from records alone."""

from tests.support.runs import created
from tests.support.small_runs import begun, fill
from tokendyno.backend.cli.progress import live_line, log_line
from tokendyno.backend.messages import Finished, Progress, Started, Tokens
from tokendyno.backend.runs.records import ArmEvent
from tokendyno.backend.runs.run import Run

START_S = 1000.0


def tokens(run: Run, arm: str, repeat: int, count: int) -> None:
    latencies_s = [0.5] + [0.1] * (count - 1)
    times = [sum(latencies_s[: i + 1]) for i in range(count)]
    zeros = [0] * count
    run.append(ArmEvent(arm, repeat, 1.0, Tokens(0, times, latencies_s, zeros, zeros, zeros, list(range(count)), "x")))


def running(repeats: int = 1) -> Run:
    """Arm A has generated 16 of its 64 tokens."""
    run = Run(created(at_s=START_S, repeats=repeats))
    run.append(ArmEvent("A", 0, 0.5, Started(4, 1, 64, [])))
    run.append(ArmEvent("A", 0, 0.5, Progress("run", "begin", 0.0)))
    tokens(run, "A", 0, 16)
    return run


def test_a_measured_run_has_a_bar_its_tokens_and_the_time_that_is_left() -> None:
    assert live_line(running(), START_S + 2, "━─") == "A run ━━━━━─────────────── 16/64 tokens, 4.8 s left | B waiting"
    assert live_line(running(repeats=5), START_S + 2, "#-") == (
        "A run #------------------- 16/64 tokens, run 1 of 5, 4.8 s left | B waiting"
    )
    assert len(live_line(running(repeats=5), START_S + 2, "━─")) < 80


def test_a_later_repeat_counts_its_own_tokens() -> None:
    run = running(repeats=2)
    tokens(run, "A", 1, 32)
    assert "32/64 tokens, run 2 of 2, 3.2 s left" in live_line(run, START_S + 9)


def test_a_repeat_that_begins_does_not_count_the_tokens_of_the_one_before() -> None:
    run = running(repeats=2)
    run.append(ArmEvent("A", 0, 6.0, Progress("run", "end", 6.0)))
    run.append(ArmEvent("A", 0, 6.1, Finished("length", "x", 0.5, 6.0, 2**29, "RSS", "clock", [], {})))
    run.append(ArmEvent("A", 1, 7.0, Progress("run", "begin", 0.0)))
    assert log_line(run) == "A: run | B: waiting" and "16/64" not in live_line(run, START_S + 7)


def test_a_phase_has_its_seconds_and_what_is_expected_of_it() -> None:
    run = Run(created(at_s=START_S))
    run.append(ArmEvent("A", 0, 1.0, Progress("compile", "begin", 0.0)))
    assert live_line(run, START_S + 43) == "A compile 42 s, no earlier run tells how long | B waiting"
    run.arms["A"].expected_s["compile"] = 84.0
    assert live_line(run, START_S + 43, "#-") == "A compile ##########---------- 42 s, about 84 s expected | B waiting"
    assert log_line(run) == "A: compile, about 84 s expected | B: waiting"


def test_a_log_has_a_line_for_every_quarter() -> None:
    lines = set()
    for count in range(1, 65):
        run = Run(created(at_s=START_S))
        run.append(ArmEvent("A", 0, 0.5, Progress("run", "begin", 0.0)))
        tokens(run, "A", 0, count)
        lines.add(log_line(run))
    assert len(lines) == 5 and "A: run 48/64 tokens | B: waiting" in lines


def test_an_arm_that_is_done_says_so() -> None:
    run = begun()
    fill(run, "A")
    assert live_line(run, START_S).startswith("A done | B waiting") and log_line(run) == "A: done | B: waiting"
