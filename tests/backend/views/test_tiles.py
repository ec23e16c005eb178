"""Tiles and the detail rows behind them."""

from typing import Any

import msgspec
import pytest

from tokendyno.backend.counts import RunCounts, counts_of
from tokendyno.backend.runs.records import PrefillBound
from tokendyno.backend.runs.summary import Measured, Summary, summarize
from tokendyno.backend.views.details import details
from tokendyno.backend.views.tiles import Tile, tiles


def summary(*runs: list[float], batch: int = 1, prefill: bool = True, kv: Any = None, **extra: float) -> Summary:
    counts = counts_of(extra)
    return summarize(
        [Measured(r, counts) for r in runs],
        batch,
        len(runs[0]) if runs else 0,
        [1 << 30] if runs else [],
        kv,
        2048 if kv else None,
        prefill=prefill,
    )


def by_key(made: list[Tile]) -> dict[str, Tile]:
    assert len({tile.key for tile in made}) == len(made)
    return {tile.key: tile for tile in made}


# --- tiles ----------------------------------------------------------------------------------------


def test_an_arm_that_has_measured_nothing_has_every_tile_and_no_zero() -> None:
    made = tiles(summary(), "RSS", 1)
    assert {tile.key for tile in made} == {"ttft", "latency", "rate", "share", "memory", "kv"}
    assert {(tile.value, tile.unit) for tile in made} == {("n/a", "")}


def test_tiles_of_a_run_name_spread_batch_repeats_and_prediction() -> None:
    made = by_key(tiles(summary([0.1, 0.01], [0.3, 0.03], batch=4, kv=(1024, 1024)), "RSS", 4))
    assert (made["ttft"].value, made["ttft"].unit) == ("173", "ms")
    assert "2 runs" in made["ttft"].note
    assert (made["rate"].label, made["rate"].note) == ("Decode speed per sequence", "231 tok/s in the batch of 4")
    assert (made["rate"].value, made["rate"].unit) == ("57.7", "tok/s"), "1 / 17.3 ms, the time per token"
    assert (made["memory"].value, made["memory"].unit, made["memory"].note) == ("1.00", "GiB", "RSS")
    assert made["kv"].note == "as predicted"


def test_one_run_has_a_deviation_and_no_interval() -> None:
    once = by_key(details(summary([0.1, 0.01, 0.03]), RunCounts(), {}, "cpu"))
    assert once["stdev"].value == "14.1" and once["interval"].value == "n/a"


def test_without_a_known_bandwidth_there_is_no_tile_for_the_roofline() -> None:
    assert "share" not in by_key(tiles(summary([0.1, 0.01]), "RSS", 1, roofline_note="not measured yet"))
    bounded = msgspec.structs.replace(summary([0.1, 0.01]), roofline_s=0.001, roofline_share=0.1)
    assert by_key(tiles(bounded, "RSS", 1, roofline_note="5 GB/s"))["share"].value == "10.0"


def test_a_percentile_is_noted_where_the_sample_carries_it() -> None:
    made = by_key(tiles(summary([0.1] + [0.01] * 64), "RSS", 1))
    assert made["latency"].note == "p90 10.0 ms"


def test_a_wrong_prediction_is_said() -> None:
    assert "-50.0%" in by_key(tiles(summary([0.1], kv=(1024, 0)), "RSS", 1))["kv"].note


def test_an_encoder_has_no_first_token_and_no_cache() -> None:
    made = by_key(tiles(summary([0.1, 0.1], batch=8, prefill=False), "RSS", 8, "forward"))
    assert set(made) == {"latency", "rate", "share", "memory"}
    assert made["latency"].label == "Time per forward pass, mean"
    assert (made["rate"].value, made["rate"].unit, made["rate"].note) == ("80.0", "sequences/s", "batch of 8")
    assert not any("oken" in tile.label + tile.unit + tile.note for tile in made.values())


# --- the rows behind them -------------------------------------------------------------------------

GPU = {
    "process_now_bytes": 2.0**30,
    "allocator_peak_bytes": 2.0**29,
    "sm_clock_mhz": 1980.0,
    "sm_clock_low_mhz": 1200.0,
    "temperature_c": 61.0,
    "cpu_others_cores": 0.5,
}


def test_rows_of_a_gpu_run() -> None:
    s = summary([1.0] + [0.010] * 700, step_busy_s=0.004, energy_j=701.0)
    made = by_key(details(s, counts_of(GPU), {"load": 2.0, "warmup": 0.5, "run": 9.0}, "cuda"))
    assert (made["busy"].value, made["busy"].unit) == ("40.0", "%")
    assert "launch-bound" in made["busy"].note
    assert (made["energy"].value, made["energy"].unit) == ("1.00", "J")
    assert (made["p90"].value, made["p99"].value) == ("10.0", "10.0")
    assert made["clock"].note == "lowest 1,200 MHz"
    assert (made["cold"].value, made["cold"].unit) == ("2.50", "s"), "the run itself is not cold"
    assert made["allocator"].value != made["memory_now"].value
    assert made["allocator"].note == made["allocator_now"].note == "tensors, counted by PyTorch's allocator"


def test_what_the_driver_does_not_tell_is_not_called_quiet() -> None:
    s = summary([1.0, 0.1])
    made = by_key(details(s, counts_of({"gpu_slowed_share": 0.25, "gpu_others_share": 0.0}), {}, "cuda"))
    assert (made["slowed"].value, made["gpu_others"].value) == ("25.0", "0")
    unknown = by_key(details(s, RunCounts(), {}, "cuda"))
    assert {(unknown[key].value, unknown[key].note) for key in ("slowed", "gpu_others")} == {
        ("n/a", "not reported by the driver")
    }


def test_the_warm_up_is_told_with_its_time_and_the_memory_with_its_source() -> None:
    extra = counts_of({"warmup_steps": 21.0, "warmup_window_steps": 6.0, "process_now_bytes": 1024.0})
    made = by_key(details(summary([1.0, 0.1]), extra, {"compile": 20.0, "warmup": 0.5}, "cpu", memory_label="RSS"))
    assert (made["warmup"].value, made["warmup"].unit) == ("21", "tokens")
    assert (
        made["warmup"].note
        == "6 of them past the sliding window, after a prompt of its length, compile (cold) 20.0 s, warm-up 500 ms"
    )
    assert made["memory_now"].note == "RSS"
    assert by_key(details(summary([1.0, 0.1]), RunCounts(), {}, "cpu"))["warmup"].value == "n/a"


def test_steps_that_scatter_by_more_than_five_percent_are_called_noisy() -> None:
    assert by_key(details(summary([1.0, 0.10, 0.12]), RunCounts(), {}, "cpu"))["stdev"].note.endswith("noisy: above 5%")
    assert by_key(details(summary([1.0, 0.100, 0.102]), RunCounts(), {}, "cpu"))["stdev"].note == "1.40% of the mean"


def test_what_is_not_known_is_not_a_zero() -> None:
    for device in ("cpu", "cuda"):
        made = by_key(details(summary([1.0, 0.1]), RunCounts(), {}, device))
        unknown = {"p90", "p99", "stdev", "interval", "run_cv", "cold", "memory_now", "energy", "others", "warmup"}
        assert {key for key, tile in made.items() if tile.value == "n/a"} >= unknown
        assert not any(tile.value == "0" for tile in made.values())
        assert ("busy" in made) is (device == "cuda")
    assert (made["p99"].note, made["interval"].note) == ("needs 662 steps", "needs 2 runs")


@pytest.mark.parametrize(
    ("runs", "value", "unit"),
    [(([1.0, 0.1], [1.0, 0.1]), "100 to 100", "ms"), (([9.0, 2.0], [9.0, 2.0]), "2.00 to 2.00", "s")],
)
def test_both_ends_of_an_interval_are_in_one_unit(runs: Any, value: str, unit: str) -> None:
    row = by_key(details(summary(*runs), RunCounts(), {}, "cpu"))["interval"]
    assert (row.value, row.unit) == (value, unit)


def test_an_interval_of_times_is_above_zero_and_holds_the_mean() -> None:
    measured = summary([1.0, 0.0398], [1.0, 0.04])
    row = by_key(details(measured, RunCounts(), {}, "cpu"))["interval"]
    assert (row.value, row.unit, row.note) == ("33.1 to 48.1", "ms", "over 2 runs")
    assert measured.latency_mean_s == pytest.approx((0.0331 * 0.0481) ** 0.5, rel=0.01)


def test_two_runs_are_shown_where_their_interval_is_wider_than_their_mean() -> None:
    measured = summary([1.0, 0.0056], [1.0, 0.0051])
    row = by_key(details(measured, RunCounts(), {}, "cpu"))["interval"]
    assert (row.value, row.unit, row.note) == ("5.10 and 5.60", "ms", "2 runs: three or more give an interval")
    assert measured.both_s == pytest.approx((0.0051, 0.0056)) and summary([1.0, 0.1]).both_s == ()


BOUND = PrefillBound(0.05, "compute", "49 Tflop at 989 Tflop/s, a test")


def test_the_first_token_stands_against_its_bound() -> None:
    once, twice = (summary(*[[0.1, 0.01]] * runs) for runs in (1, 2))
    assert by_key(tiles(once, "RSS", 1, prefill=BOUND))["ttft"].note == "50.0% of its compute bound"
    assert by_key(tiles(twice, "RSS", 1, prefill=BOUND))["ttft"].note == "mean over 2 runs, 50.0% of its compute bound"
    assert not by_key(tiles(once, "RSS", 1))["ttft"].note
    assert not by_key(tiles(summary(), "RSS", 1, prefill=BOUND))["ttft"].note, "nothing is measured yet"


def test_what_is_made_on_first_use_is_named_where_it_was_seen() -> None:
    def row(**counts: float) -> Any:
        return by_key(details(summary([0.1, 0.1]), counts_of(counts), {}, "cuda")).get("first_use")

    first_use = row(warmup_first_s=1.5, warmup_last_s=0.25)
    assert (first_use.value, first_use.unit) == ("1.25", "s")
    assert "1.50 s for the first prompt, 250 ms later" in first_use.note
    assert row(warmup_first_s=0.2, warmup_last_s=0.25).value == "0"
    assert row(warmup_first_s=0.2) is None and row() is None
