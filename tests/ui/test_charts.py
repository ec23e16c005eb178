"""The charts' data, without a picture."""

import msgspec
import pytest

from backend import view
from backend.messages import Mark
from backend.records import ArmEvent
from backend.runs import Run
from tests.ui.runs import PROMPT, TOKEN_BYTES, WINDOW, arm_records, created, encoder, passes
from ui.charts import KV, LATENCY, MEMORY, PANELS
from ui.charts.panel import Line, Series, data, series, spots


@pytest.fixture
def arms() -> list[Series]:
    run = Run(created())
    for record in [*arm_records("A", 64), *arm_records("B", 40)]:
        run.append(record)
    return series(run.delta(0, [[0, 0, 0]] * 2, 1.0))


def lines(found: list[Line], **wanted: object) -> list[Line]:
    return [line for line in found if all(getattr(line, name) == value for name, value in wanted.items())]


def test_a_windowed_cache_turns_flat_at_its_window_and_an_unwindowed_one_does_not(arms: list[Series]) -> None:
    found = data(KV, arms)
    (a,), (b,) = (lines(found, arm=arm, kind="sliding", predicted=False) for arm in "AB")
    flat = [y for x, y in zip(a.x, a.y, strict=True) if x >= WINDOW - 1]
    assert len(flat) == 64 + PROMPT - (WINDOW - 1) and set(flat) == {TOKEN_BYTES * (WINDOW - 1)}
    assert a.y[: WINDOW - 1 - PROMPT] == [TOKEN_BYTES * n for n in range(PROMPT, WINDOW - 1)]
    assert b.y == [TOKEN_BYTES * n for n in range(PROMPT, PROMPT + 40)]


def test_measured_kv_runs_along_its_prediction(arms: list[Series]) -> None:
    found = data(KV, arms)
    for arm in "AB":
        for kind in ("sliding", "full"):
            (seen,), (foretold,) = (lines(found, arm=arm, kind=kind, predicted=p) for p in (False, True))
            corners = dict(zip(foretold.x, foretold.y, strict=True))
            shared = {x: y for x, y in zip(seen.x, seen.y, strict=True) if x in corners}
            assert shared and all(corners[x] == y for x, y in shared.items())


def test_latency_begins_at_token_1_and_is_in_milliseconds(arms: list[Series]) -> None:
    a, b = lines(data(LATENCY, arms), predicted=False)
    assert a.x == list(range(1, 64)) and b.x == list(range(1, 40))
    assert set(a.y) == {10.0}


def test_the_floor_lies_under_the_latency_from_token_1_on_and_stops_rising_at_the_window(arms: list[Series]) -> None:
    found = data(LATENCY, arms)
    a, b = lines(found, predicted=True)
    assert a.x == [1, WINDOW - 1 - PROMPT, 63] == b.x
    assert a.y[0] < a.y[1] == a.y[2] and b.y[0] < b.y[1] < b.y[2]
    assert a.y[0] == pytest.approx(4 + 1e-4 * TOKEN_BYTES * (PROMPT + 1)), "milliseconds"
    assert max(a.y + b.y) < min(lines(found, predicted=False)[0].y)
    bare = data(LATENCY, [arm._replace(floor=None) for arm in arms])
    assert len(bare) == 2 and not lines(bare, predicted=True)


def test_memory_is_drawn_over_seconds_in_bytes(arms: list[Series]) -> None:
    a, _ = data(MEMORY, arms)
    assert (a.x, a.y) == ([0.0, 0.5], [2**29, 2**29 + 2**20])


def test_without_a_prediction_there_is_no_predicted_line(arms: list[Series]) -> None:
    found = data(KV, [arm._replace(predicted=None) for arm in arms])
    assert len(found) == 4 and not lines(found, predicted=True)


def test_a_single_arm_is_drawn_alone() -> None:
    run = Run(created(arms=["A"]))
    assert [line.arm for line in data(LATENCY, series(run.delta(0, [[0, 0, 0]], 0.0)))] == ["A"]


def test_a_mark_stands_on_the_value_of_its_token_and_none_on_the_prefill() -> None:
    run = Run(created())
    for record in [*arm_records("A", 64), *arm_records("B", 40)]:
        run.append(record)
    for arm, token in (("A", 7), ("A", 0), ("A", 7), ("B", 99), ("B", 12)):
        run.append(ArmEvent(arm, 0, 1.0, Mark("recompile", token, 0.5, 2.9, f"{arm} {token}")))
    found = series(run.delta(0, [[0, 0, 0]] * 2, 1.0))
    assert [(s.arm, s.x, s.y, s.texts) for s in spots(LATENCY, found)] == [
        ("A", 7, 10.0, ["A 7 (2.90 s)"] * 2), ("B", 12, 10.0, ["B 12 (2.90 s)"]),
    ]  # fmt: skip
    assert spots(KV, found) == [] == spots(MEMORY, found)
    assert [mark.token for mark in found[0].marks] == [0, 7, 7], "in order"


def test_every_column_that_is_drawn_is_sent() -> None:
    for panel in PANELS:
        for trace in panel.traces:
            curve = view.FloorCurve if trace.curve == "floor" else view.Curve
            source: type[msgspec.Struct] = curve if trace.predicted else view.LaneDelta
            assert not trace.predicted or trace.curve in view.ArmHead.__struct_fields__
            assert trace.column in source.__struct_fields__, (panel.key, trace)


def test_kinds_can_be_told_apart_without_colour() -> None:
    widths = {trace.kind: trace.width for trace in KV.traces if not trace.predicted}
    assert len(set(widths.values())) == len(widths) == 2


def test_a_pull_without_its_head_cannot_be_drawn() -> None:
    run = Run(created())
    with pytest.raises(ValueError, match="version 0"):
        series(run.delta(run.version, [[0, 0, 0]] * 2, 0.0))


def test_the_first_pass_of_an_encoder_is_drawn_like_the_others_and_its_cache_is_explained() -> None:
    run = Run(encoder())
    for record in passes("A", 20):
        run.append(record)
    found = series(run.delta(0, [[0, 0, 0]], 1.0))
    (line,) = data(LATENCY, found)
    assert (line.x, set(line.y)) == (list(range(20)), {10.0})
    assert set(data(KV, found)[0].y) == {0}
    assert LATENCY.encoder is not None and "oken" not in LATENCY.encoder.title + LATENCY.encoder.x_title
    assert KV.encoder is not None and "no KV cache" in KV.encoder.note
