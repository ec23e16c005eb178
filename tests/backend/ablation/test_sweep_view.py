"""A sweep as the page gets it, from a journal whose figures are known."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.ablations import stored_sweep
from tokendyno.backend.ablation.courses import Courses
from tokendyno.backend.ablation.kinds import Sweep
from tokendyno.backend.ablation.sweep_view import SweepView, sweep_view
from tokendyno.backend.executors import open_bench


def view(folder: Path, **more: Any) -> SweepView:
    stored_sweep(folder, **more)
    bench = open_bench(folder / "history.sqlite")
    course = Courses(bench).get("stored-sweep")
    assert isinstance(course, Sweep)
    shown = sweep_view(course)
    bench.close()
    return shown


def test_lines_run_over_the_size_with_intervals_and_one_for_each_choice(tmp_path: Path) -> None:
    shown = view(tmp_path)
    assert shown.course.sentence.startswith("Stopped after 16 of 19 runs")
    assert shown.headline.startswith("Least time per token: Batch size: 1, Dtype: float32, 8.96 ms (")
    assert "(no clear difference from Batch size: 1, Dtype: float32" in shown.headline
    assert "Least memory: Batch size: 1, Dtype: bf" in shown.headline
    assert (shown.horizontal, shown.places, shown.numbers) == ("Batch size", ["1", "4", "16"], True)
    time, rate, *_ = shown.charts
    bfloat16, float32 = time.lines
    assert (bfloat16.title, float32.title) == ("Dtype: bfloat16", "Dtype: float32")
    assert bfloat16.values == pytest.approx([29, 53, 149], rel=2e-3)
    assert float32.values[:2] == pytest.approx([9, 33], rel=5e-3)
    low, high = bfloat16.low[0], bfloat16.high[0]
    assert (
        low is not None
        and high is not None
        and 20 < low < 29 < high < 40
        and float32.values[2] is float32.low[2] is None
    )
    assert float32.texts[2] == "not measured" and rate.lines[0].values[1] == pytest.approx(4 / 0.053, rel=1e-3)
    assert [len([low for low in chart.lines[0].low if low is not None]) for chart in shown.charts] == [3] * 4


def test_heat_maps_are_of_two_and_points_compete_with_their_own_size(tmp_path: Path) -> None:
    shown = view(tmp_path)
    time, memory = shown.heats
    assert (shown.down, shown.across, time.rows, time.columns) == (
        "Batch size",
        "Dtype",
        ["1", "4", "16"],
        ["bfloat16", "float32"],
    )
    assert time.texts[2] == ["149 ms", "not measured"] and memory.values[0] == [100, 150]
    assert shown.pareto is not None and shown.pareto.quality == "KL divergence"
    assert [point.front for point in shown.pareto.points] == [True] * 5, "fast and large against slow and small"
    head, first, second, *_, last = shown.table
    assert head[:4] == ["Batch size", "Dtype", "Time per token", "Tokens/s"]
    assert first[2:4] == ["29.0 ms (23.4 to 35.9)", "34.5 tok/s (27.8 to 42.8)"]
    assert (first[-2], second[-2], last[2]) == ("0 nats", "0.0200 nats", "not measured")


def test_a_refused_point_has_its_reason_and_sizes_alone_have_no_front(tmp_path: Path) -> None:
    shown = view(tmp_path, over=[("cache", "dynamic,offloaded"), ("max_new_tokens", "2,4")])
    assert "no GPU" in shown.table[-1][-1] and shown.charts[0].lines[1].texts == ["refused", "refused"]
    (tmp_path / "sizes").mkdir()
    alone = view(tmp_path / "sizes", over=[("batch_size", "1,4,16")], positions=0)
    assert alone.pareto is None and alone.heats == [] and "KL divergence" not in alone.table[0]
