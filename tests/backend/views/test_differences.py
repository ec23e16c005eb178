"""B's figures against A's, for the tiles."""

from backend.messages import Tokens
from backend.runs.records import ArmEvent, Ended
from backend.runs.run import Run
from backend.views.differences import Difference, differences
from tests.support.runs import arm_records, created, ended, finished


def measured(b_step_s: list[float], done: bool = True) -> Run:
    """A takes 0.2 s a step in each repeat; B takes these."""
    run = Run(created(repeats=len(b_step_s)))
    for number, of_b_s in enumerate(b_step_s):
        for arm, step_s in (("A", 0.2 + 0.001 * number), ("B", of_b_s)):
            latencies_s = [1.0, step_s, step_s]
            kv = [100 if arm == "A" else 150] * 3
            part = Tokens(0, [1.0, 1.0 + step_s, 1.0 + 2 * step_s], latencies_s, kv, kv, [2**30] * 3, [1] * 3, "x")
            run.append(ArmEvent(arm, number, 1.0, part))
            run.append(ArmEvent(arm, number, 1.1, finished("x")))
    if done:
        run.append(Ended(9.0, "done"))
    return run


def test_a_faster_arm_is_marked_only_where_the_interval_says_so() -> None:
    found = differences(measured([0.1, 0.101, 0.099]).snapshot())
    assert found["latency_median"] == Difference("B 50% less", "B") and found["rate"] == Difference(
        "B 2.0x that of A", "B"
    )
    once = differences(measured([0.1]).snapshot())
    assert once["latency_median"] == Difference("B 50% less") and once["rate"].better == ""
    noisy = differences(measured([0.1, 0.5, 0.25]).snapshot())
    assert noisy["latency_median"].text.endswith("within noise") and noisy["latency_median"].better == ""


def test_bytes_are_compared_from_one_run_and_equal_ones_are_called_the_same() -> None:
    found = differences(measured([0.1]).snapshot())
    assert found["kv"] == Difference("A 33% less", "A") and found["memory"] == Difference("B the same")
    assert "share" not in found, "there is no roofline bound"


def test_arms_at_different_tokens_are_not_compared() -> None:
    assert differences(measured([0.1], done=False).snapshot()) == {}
    stopped = Run(created())
    for record in [*arm_records("A", 9), *arm_records("B", 5, done=False), ended("cancelled")]:
        stopped.append(record)
    assert differences(stopped.snapshot()) == {}
