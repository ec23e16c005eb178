"""Declarations of the charts: every column is sent, every kind of line can be told apart, every text fits the run."""

import msgspec

from tokendyno.backend.runs.run import Columns
from tokendyno.backend.views import live
from tokendyno.ui.live.charts import CHARTS, KV, LATENCY, MEMORY


def test_every_column_that_is_drawn_is_sent() -> None:
    for chart in CHARTS:
        for line in chart.lines:
            source: type[msgspec.Struct] = Columns
            if line.curve:
                assert line.curve in live.ArmHead.__struct_encode_fields__
                source = live.RooflineCurve if line.curve == "floor" else live.KvCurve
                source = live.RankCurves if line.curve == "ranks" else source
                assert "x" in source.__struct_encode_fields__
            assert line.column in source.__struct_encode_fields__, (chart.key, line)


def test_kinds_can_be_told_apart_without_colour() -> None:
    widths = {line.kind: line.width for line in KV.lines if not line.curve}
    assert len(set(widths.values())) == len(widths) == 2


def test_a_curve_has_a_name_by_which_it_can_be_hidden_and_a_measured_line_has_none() -> None:
    assert all(bool(line.label) == bool(line.curve) for chart in CHARTS for line in chart.lines)


def test_curves_are_drawn_first_below_the_measurements() -> None:
    for chart in CHARTS:
        drawn = [bool(line.curve) for line in chart.lines]
        assert drawn == sorted(drawn, reverse=True)


def test_an_encoder_has_passes_and_no_kv_cache() -> None:
    assert LATENCY.encoder is not None and "oken" not in LATENCY.encoder.title
    assert KV.encoder is not None and "no KV cache" in KV.encoder.note
    assert MEMORY.encoder is None


def test_the_browser_gets_plain_json() -> None:
    for chart in CHARTS:
        sent = chart.as_json()
        assert sent == msgspec.json.decode(msgspec.json.encode(sent)) | {"lines": sent["lines"]}
        assert isinstance(sent["lines"], list) and sent["lines"][0]["column"] == chart.lines[0].column
