"""What is said of figures: tiles, the rows behind them, A against B, and what spoiled a run."""

from typing import Any

import pytest

from backend.figures import MEASURE_REPEATS, details, named, spoilers, tiles, verdict
from backend.messages import Mark
from backend.statistics import Comparison, Measured, Summary, compare, summarize
from backend.view import Tile


def summary(*runs: list[float], batch: int = 1, prefill: bool = True, kv: Any = None, **extra: float) -> Summary:
    return summarize(
        [Measured(r, extra) for r in runs], batch, len(runs[0]) if runs else 0, [1 << 30] if runs else [], kv,
        2048 if kv else None, prefill=prefill,
    )  # fmt: skip


def by_key(made: list[Tile]) -> dict[str, Tile]:
    assert len({tile.key for tile in made}) == len(made)
    return {tile.key: tile for tile in made}


# --- tiles ----------------------------------------------------------------------------------------


def test_an_arm_that_has_measured_nothing_has_every_tile_and_no_zero() -> None:
    made = tiles(summary(), "RSS", 1)
    assert {tile.key for tile in made} == {"ttft", "latency_median", "latency_mean", "rate", "share", "memory", "kv"}
    assert {(tile.value, tile.unit) for tile in made} == {("n/a", "")}


def test_tiles_of_a_run_name_spread_batch_repeats_and_prediction() -> None:
    made = by_key(tiles(summary([0.1, 0.01], [0.3, 0.03], batch=4, kv=(1024, 1024)), "RSS", 4))
    assert (made["ttft"].value, made["ttft"].unit) == ("200", "ms")
    assert "2 runs" in made["ttft"].note
    assert made["latency_mean"].note == "± 127 (95%)", "in the unit beside it"
    assert made["rate"].note == "batch of 4: 200 tok/s"
    assert (made["rate"].value, made["rate"].unit) == ("50.0", "tok/s")
    assert (made["memory"].value, made["memory"].unit, made["memory"].note) == ("1.00", "GiB", "RSS")
    assert made["kv"].note == "as predicted"


def test_one_run_has_a_deviation_and_no_interval() -> None:
    made = by_key(tiles(summary([0.1, 0.01, 0.03]), "RSS", 1))
    assert made["latency_mean"].note == "sd 14.1 ms"
    assert made["latency_median"].note == ""


def test_a_percentile_is_noted_where_the_sample_carries_it() -> None:
    made = by_key(tiles(summary([0.1] + [0.01] * 64), "RSS", 1))
    assert made["latency_median"].note == "p90 10.0 ms"


def test_a_wrong_prediction_is_said() -> None:
    assert "-50.0%" in by_key(tiles(summary([0.1], kv=(1024, 0)), "RSS", 1))["kv"].note


def test_an_encoder_has_no_first_token_and_no_cache() -> None:
    made = by_key(tiles(summary([0.1, 0.1], batch=8, prefill=False), "RSS", 8, "forward"))
    assert set(made) == {"latency_median", "latency_mean", "rate", "share", "memory"}
    assert made["latency_median"].label == "Forward pass latency, median"
    assert (made["rate"].value, made["rate"].unit, made["rate"].note) == ("80.0", "sequences/s", "batch of 8")
    assert not any("oken" in tile.label + tile.unit + tile.note for tile in made.values())


# --- the rows behind them -------------------------------------------------------------------------

GPU = {
    "process_now_bytes": 2.0**30, "allocator_peak_bytes": 2.0**29, "sm_clock_mhz": 1980.0, "sm_clock_low_mhz": 1200.0,
    "temperature_c": 61.0, "cpu_others_cores": 0.5,
}  # fmt: skip


def test_rows_of_a_gpu_run() -> None:
    s = summary([1.0] + [0.010] * 700, step_busy_s=0.004, energy_j=701.0)
    made = by_key(details(s, GPU, {"load": 2.0, "warmup": 0.5, "run": 9.0}, "cuda"))
    assert (made["busy"].value, made["busy"].unit) == ("40.0", "%")
    assert "launch-bound" in made["busy"].note
    assert (made["energy"].value, made["energy"].unit) == ("1.00", "J")
    assert (made["p90"].value, made["p99"].value) == ("10.0", "10.0")
    assert made["clock"].note == "lowest 1,200 MHz"
    assert (made["cold"].value, made["cold"].unit) == ("2.50", "s"), "the run itself is not cold"
    assert made["allocator"].value != made["memory_now"].value
    assert made["allocator"].note == made["allocator_now"].note == "tensors, counted by torch"


def test_what_the_driver_does_not_tell_is_not_called_quiet() -> None:
    s = summary([1.0, 0.1])
    made = by_key(details(s, {"gpu_slowed_share": 0.25, "gpu_others_share": 0.0}, {}, "cuda"))
    assert (made["slowed"].value, made["gpu_others"].value) == ("25.0", "0")
    unknown = by_key(details(s, {}, {}, "cuda"))
    assert {(unknown[key].value, unknown[key].note) for key in ("slowed", "gpu_others")} == {
        ("n/a", "the driver does not tell")
    }


def test_the_warm_up_is_told_with_its_time_and_the_memory_with_its_source() -> None:
    extra = {"warmup_steps": 21.0, "warmup_window_steps": 6.0, "process_now_bytes": 1024.0}
    made = by_key(details(summary([1.0, 0.1]), extra, {"compile": 20.0, "warmup": 0.5}, "cpu", memory_label="RSS"))
    assert (made["warmup"].value, made["warmup"].unit) == ("21", "tokens")
    assert (
        made["warmup"].note == "6 of them past the window, after a prompt as long as it, compile 20.0 s, warmup 500 ms"
    )
    assert made["memory_now"].note == "RSS"
    assert by_key(details(summary([1.0, 0.1]), {}, {}, "cpu"))["warmup"].value == "n/a"


def test_steps_that_scatter_by_more_than_five_percent_are_called_unsteady() -> None:
    assert by_key(details(summary([1.0, 0.10, 0.12]), {}, {}, "cpu"))["stdev"].note.endswith("unsteady: above 5%")
    assert by_key(details(summary([1.0, 0.100, 0.102]), {}, {}, "cpu"))["stdev"].note == "1.40% of the mean"


def test_launch_bound_is_named_and_a_busy_gpu_is_not_called_so() -> None:
    waiting, busy = (summary([1.0] + [0.010] * 20, step_busy_s=at_work_s) for at_work_s in (0.0038, 0.009))
    (sentence,) = named(waiting)
    assert sentence.startswith("Launch-bound: the GPU worked 38.0% of the time of a token")
    assert "of a pass" in named(waiting, "forward")[0]
    assert (waiting.launch_bound, busy.launch_bound, summary([1.0, 0.1]).launch_bound) == (True, False, None)
    assert named(busy) == named(summary([1.0, 0.1])) == []
    assert by_key(details(busy, {}, {}, "cuda"))["busy"].note == ""


def test_what_is_not_known_is_not_a_zero() -> None:
    for device in ("cpu", "cuda"):
        made = by_key(details(summary([1.0, 0.1]), {}, {}, device))
        unknown = {"p90", "p99", "stdev", "interval", "run_cv", "cold", "memory_now", "energy", "others", "warmup"}
        assert {key for key, tile in made.items() if tile.value == "n/a"} >= unknown
        assert not any(tile.value == "0" for tile in made.values())
        assert ("busy" in made) is (device == "cuda")
    assert (made["p99"].note, made["interval"].note) == ("needs 662 steps", "needs 2 runs (Measure)")


def test_more_than_five_percent_between_runs_is_unsteady() -> None:
    assert "unsteady" in by_key(details(summary([1.0, 0.10], [1.0, 0.12]), {}, {}, "cpu"))["run_cv"].note
    assert by_key(details(summary([1.0, 0.100], [1.0, 0.102]), {}, {}, "cpu"))["run_cv"].note == ""


@pytest.mark.parametrize(
    ("runs", "value", "unit"),
    [(([1.0, 0.1], [1.0, 0.1]), "100 to 100", "ms"), (([9.0, 2.0], [9.0, 2.0]), "2.00 to 2.00", "s")],
)
def test_both_ends_of_an_interval_are_in_one_unit(runs: Any, value: str, unit: str) -> None:
    row = by_key(details(summary(*runs), {}, {}, "cpu"))["interval"]
    assert (row.value, row.unit) == (value, unit)


# --- A against B ----------------------------------------------------------------------------------


def told(a: list[float], b: list[float], unit: Any = "token") -> str:
    one, other = ([Measured([1.0, x]) for x in arm] for arm in (a, b))
    return verdict(compare(one, other), unit)


def test_a_faster_arm_is_named_with_its_interval() -> None:
    assert told([0.20, 0.20], [0.10, 0.10]) == (
        "B is 2.000 times as fast as A, by time per token (95% interval 2.000 to 2.000, 2 pairs of runs)."
    )
    assert told([0.10, 0.10], [0.30, 0.30]).startswith("A is 3.000 times as fast as B")
    assert "time per forward pass" in told([0.2, 0.2], [0.1, 0.1], "forward")


def test_no_difference_is_a_verdict() -> None:
    assert told([0.1, 0.12, 0.09], [0.11, 0.09, 0.12]).startswith("No difference found: time per token A/B is 0.9")


def test_a_small_difference_keeps_its_digits() -> None:
    assert told([0.1004, 0.1004], [0.1, 0.1]).startswith("B is 1.004 times as fast")


def test_one_pair_says_what_to_do() -> None:
    assert f"--repeats {MEASURE_REPEATS}" in told([0.2], [0.1])
    assert verdict(None) == ""


def test_a_large_ratio_has_three_digits() -> None:
    assert "12,300 times" in verdict(Comparison(12345.0, 12000.0, 13000.0, 0.95, 3, "b_faster"))


# --- what spoiled it ------------------------------------------------------------------------------


def mark(
    text: str = "other programs took the CPU", seconds: float = 0.5, token: int = 7, kind: Any = "foreign"
) -> Mark:
    return Mark(kind, token, 1.0, seconds, text)


def test_each_cause_is_one_sentence_over_all_runs() -> None:
    marks = [(0, mark()), (0, mark(seconds=1.0)), (1, mark()), (1, mark("the GPU lowered its clocks (power cap)", 2.0))]
    a, b = spoilers(marks, summary([1.0, 0.1]), 40.0)
    assert a == "May be spoiled: other programs took the CPU, for 2.00 of 40.0 s, in 2 runs."
    assert b == "May be spoiled: the GPU lowered its clocks (power cap), for 2.00 of 40.0 s, from token 7 on."


def test_a_quiet_run_has_nothing_to_say() -> None:
    assert spoilers([], summary([1.0, 0.1], [1.0, 0.1]), 2.0) == []


def test_runs_that_differ_are_called_unsteady() -> None:
    (told_so,) = spoilers([], summary([1.0, 0.10], [1.0, 0.12]), 2.0)
    assert told_so.startswith("Unsteady") and "12.9%" in told_so
