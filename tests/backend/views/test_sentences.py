"""Sentences: diagnoses and interference."""

from typing import Any

from tokendyno.backend.counts import counts_of
from tokendyno.backend.messages import Annotation
from tokendyno.backend.runs.summary import Measured, Summary, summarize
from tokendyno.backend.views.sentences import diagnoses, interference


def summary(*runs: list[float], **extra: float) -> Summary:
    return summarize([Measured(r, counts_of(extra)) for r in runs], 1, len(runs[0]), [1 << 30], None, None)


# --- interference ---------------------------------------------------------------------------------


def mark(
    text: str = "other programs took the CPU", seconds: float = 0.5, token: int = 7, kind: Any = "foreign"
) -> Annotation:
    return Annotation(kind, token, 1.0, seconds, text)


def test_each_cause_is_one_sentence_over_all_runs() -> None:
    marks = [(0, mark()), (0, mark(seconds=1.0)), (1, mark())]
    marks.append((1, mark("the GPU lowered its clocks (power cap)", 2.0, kind="throttle")))
    a, b, c = interference(marks, summary([1.0, 0.1]), 40.0)
    assert a == "Possible interference: other programs took the CPU for 2.00 of 40.0 s, in 2 runs."
    assert b == "Possible interference: the GPU lowered its clocks (power cap) for 2.00 of 40.0 s, from token 7 on."
    assert "nvidia-smi --lock-gpu-clocks" in c


def test_a_quiet_run_has_nothing_to_say() -> None:
    assert interference([], summary([1.0, 0.1], [1.0, 0.1]), 2.0) == []


def test_runs_that_differ_are_called_noisy() -> None:
    (sentence,) = interference([], summary([1.0, 0.10], [1.0, 0.12]), 2.0)
    assert sentence.startswith("Noisy") and "12.9%" in sentence
    assert "The intervals include this" in sentence, "a verdict with an interval stands"


# --- what the figures reveal ----------------------------------------------------------------------


def test_launch_bound_is_named_and_a_busy_gpu_is_not() -> None:
    waiting, busy = (summary([1.0] + [0.010] * 20, step_busy_s=at_work_s) for at_work_s in (0.0038, 0.009))
    (sentence,) = diagnoses(waiting)
    assert sentence.startswith("Launch-bound: the GPU was busy for 38.0% of the time per token")
    assert "per pass" in diagnoses(waiting, "forward")[0]
    assert (waiting.launch_bound, busy.launch_bound, summary([1.0, 0.1]).launch_bound) == (True, False, None)
    assert diagnoses(busy) == diagnoses(summary([1.0, 0.1])) == []
