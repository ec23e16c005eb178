"""Points of a sweep, and what follows from their trials."""

import pytest

from tokendyno.backend.ablation.journal import Heading, Journal, Trial
from tokendyno.backend.ablation.sweep import PROMPT_SIZES, Point, plan_points, point_results, traffic_of
from tokendyno.backend.ablation.trials import Task, keep, reading_tasks, trial_tasks
from tokendyno.backend.config import Workload
from tokendyno.backend.errors import InputError
from tokendyno.backend.quality import Quality
from tokendyno.backend.quality.texts import shipped_texts
from tokendyno.backend.recordings.recorded_runs import shipped_records
from tokendyno.backend.runs.run import folded
from tokendyno.backend.runs.statistics import estimate

WORK = Workload(prompt_tokens=16, max_new_tokens=4)


def test_points_are_every_combination_with_their_own_sizes_and_choices() -> None:
    points = plan_points(
        "pocket", {"dtype": "float32"}, {"batch_size": ["1", "8"], "cache": ["dynamic", "static"]}, WORK
    )
    assert [point.name for point in points] == [
        "batch_size=1,cache=dynamic",
        "batch_size=1,cache=static",
        "batch_size=8,cache=dynamic",
        "batch_size=8,cache=static",
    ]
    assert points[1].title == "Batch size: 1, KV cache: static"
    assert [point.workload.batch_size for point in points] == [1, 1, 8, 8]
    assert [point.choices.get("cache") for point in points] == [None, "static"] * 2
    assert all(point.choices["dtype"] == "float32" and point.workload.ignore_eos for point in points)
    assert {point.workload.prompt_tokens for point in points} == {16}


def test_trials_are_kept_by_names_and_told_by_titles() -> None:
    points = plan_points("pocket", {}, {"prompt_tokens": ["16", "2048"], "cache": ["dynamic", "static"]}, WORK)
    journal = Journal(None, Heading("pocket", {}, [], ["sweep"], WORK, "cpu", {}))
    trials = trial_tasks("pocket", points, 2, journal)
    assert (trials[3].arm, trials[3].what) == (
        "prompt_tokens=2048,cache=static",
        "round 1 of 2: Prompt tokens: 2,048, KV cache: static",
    )
    arms = [Point({}, choices, WORK) for choices in ({}, {"cache": "static"})]
    assert [task.what for task in trial_tasks("pocket", arms, 1, journal)] == [
        "round 1 of 1: defaults",
        "round 1 of 1: KV cache static",
    ]
    for read in (points, arms):
        reading = reading_tasks("pocket", read, Quality(shipped_texts()), journal)
        assert [task.what for task in reading] == ["quality: KV cache static"]


@pytest.mark.parametrize(
    ("over", "why"),
    [
        ({"batch_sise": ["1", "2"]}, "Did you mean"),
        ({"batch_size": ["1"]}, "two different values"),
        ({"batch_size": ["1", "1"]}, "two different values"),
        ({"batch_size": ["1", "two"]}, "Batch size is .two.; it must be a whole number from 1 to 1,024"),
        ({"batch_size": ["1", "0"]}, "Batch size is 0; it must be"),
        ({"batch_size": ["1", "2000"]}, "Batch size is 2000"),
        ({"cache": ["dynamic", "statik"]}, "Did you mean"),
        ({"batch_size": [str(n) for n in range(1, 66)]}, "at most 64"),
        ({name: [str(n) for n in range(1, 30_000)] for name in PROMPT_SIZES}, "at most 64"),
    ],
)
def test_what_cannot_be_swept_is_said(over: dict[str, list[str]], why: str) -> None:
    with pytest.raises(InputError, match=why):
        plan_points("pocket", {}, over, WORK)


def test_a_point_is_summed_up_over_its_own_trials_only() -> None:
    points = plan_points("pocket", {}, {"batch_size": ["1", "8"]}, WORK)
    journal = Journal(None, Heading("pocket", {}, [("batch_size", "1,8")], ["sweep"], WORK, "cpu", {}))
    for number, step_s in enumerate((0.2, 0.3)):
        journal.add(Trial("batch_size=8", number, [9.0, step_s, step_s], 9.0, 70 + number, 5, [1]))
    one, eight = point_results(points, {"batch_size=1": "why"}, journal)
    assert (one.trials, one.latency_mean_s, one.refused) == (0, None, "why")
    assert (eight.latency_mean_s, eight.latency_low_s, eight.latency_high_s) == estimate([0.2, 0.3])
    assert (eight.trials, eight.peak_memory_bytes) == (2, 71) and eight.ttft_s == pytest.approx(9.0)


def test_requests_and_concurrency_are_sizes_of_many_requests() -> None:
    over = {"requests": ["4", "9"], "concurrent": ["2", "8"]}
    assert traffic_of(over) == traffic_of({"batching": []}) == "small" and traffic_of({"cache": []}) == ""
    points = plan_points("pocket", {}, over, WORK, "at-once")
    served = [point.traffic for point in points]
    assert [(len(one.requests), one.concurrent) for one in served if one] == [(4, 2), (4, 8), (9, 2), (9, 8)]
    assert [point.workload.batch_size for point in points] == [2, 4, 2, 8]
    with pytest.raises(InputError, match="Batch size is swept of one prompt"):
        plan_points("pocket", {}, over | {"batch_size": ["1", "2"]}, WORK, "small")


def test_a_trial_of_many_requests_has_their_useful_tokens_and_middle_times() -> None:
    run = folded(shipped_records("recorded-batching"))
    points = plan_points("pocket", {}, {"requests": ["4", "9"]}, WORK, "small")
    journal = Journal(None, Heading("pocket", {}, [], ["sweep"], WORK, "cpu", {}, traffic="small"))
    keep(Task(points[0].name, 0, run.request, ""), run, journal)
    found, served = point_results(points, {}, journal)[0], run.snapshot().batch_summaries["A"]
    assert found.tokens_per_s and found.tokens_per_s == pytest.approx(served.useful_tokens_s)
    assert (found.ttft_s, found.latency_mean_s) == pytest.approx((served.ttft.median_s, served.token.median_s))
    assert found.peak_memory_bytes


def test_every_figure_of_a_point_is_of_one_estimator_and_has_an_interval() -> None:
    """One step took a hundred times as long: what is said a token and a second stays the same figure."""
    points = plan_points("pocket", {}, {"batch_size": ["2", "8"]}, WORK)
    journal = Journal(None, Heading("pocket", {}, [("batch_size", "2,8")], ["sweep"], WORK, "cpu", {}))
    for number, slow_s in enumerate((0.1, 10.0, 0.1)):
        journal.add(Trial("batch_size=8", number, [1.0 + number, 0.1, slow_s, 0.1], 1.0 + number, 70 + number, 5, [1]))
    _, one = point_results(points, {}, journal)
    assert one.latency_mean_s and one.latency_low_s and one.latency_high_s
    assert one.tokens_per_s == pytest.approx(8 / one.latency_mean_s)
    assert (one.tokens_per_s_low, one.tokens_per_s_high) == pytest.approx(
        (8 / one.latency_high_s, 8 / one.latency_low_s)
    )
    assert one.ttft_low_s and one.ttft_s and one.ttft_high_s and one.ttft_low_s < one.ttft_s < one.ttft_high_s
    assert (one.peak_memory_low_bytes, one.peak_memory_bytes) == (70, 72) and not one.both, "of two alone"
