"""The curves of claims were measured by the commands that they name."""

import shlex

import msgspec
import pytest

from tokendyno.backend.ablation.sweep import SweepDocument
from tokendyno.backend.claims.curves import CURVES, curve_view
from tokendyno.backend.claims.declared import Curve, shipped_claims
from tokendyno.backend.cli.main import main
from tokendyno.backend.cli.parser import make_parser
from tools.mxfp4_block import drawn

SHIPPED = {curve.name: curve for claim in shipped_claims().claims for curve in claim.curves}


@pytest.mark.parametrize("curve", [curve for curve in SHIPPED.values() if curve.figure], ids=lambda curve: curve.name)
def test_a_curve_is_the_whole_sweep_of_its_command(curve: Curve) -> None:
    sweep = msgspec.json.decode((CURVES / f"{curve.name}.json").read_bytes(), type=SweepDocument)
    words = shlex.split(curve.command)
    asked = make_parser("sweep").parse_args(words[words.index("tokendyno") + 1 :])
    assert {name: values.split(",") for name, _, values in (one.partition("=") for one in asked.over)} == sweep.over
    assert (asked.model, asked.rounds) == (sweep.model, sweep.rounds)
    assert sweep.traffic or asked.max_new_tokens == sweep.workload.max_new_tokens
    assert all(point.trials == sweep.rounds and not point.refused and not point.doubtful for point in sweep.points)


def test_every_curve_has_its_file() -> None:
    assert {path.stem for path in CURVES.iterdir()} == SHIPPED.keys()


def test_windows_halve_the_cache_of_long_prompts_on_page_and_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    view = curve_view(SHIPPED["window-pocket-cpu"])
    whole, windowed = view.drawn.chart.lines
    assert view.drawn.numbers and view.drawn.places[-1] == "2,000" and view.drawn.horizontal == "Prompt tokens"
    assert whole.values[-1] == pytest.approx(2015 * 4 / 1024, rel=0.01), "MiB: 4 KiB a token in float32"
    assert windowed.values[-1] is not None and 0.5 < windowed.values[-1] / (whole.values[-1] or 1) < 0.55
    assert main(["claims", "kv-half"]) == 0
    printed = capsys.readouterr().out
    assert all(text in printed for text in (view.title, view.command, whole.texts[-1], windowed.texts[-1]))


def test_a_block_of_mxfp4_is_that_of_the_embedded_model_and_near_the_weights_it_was_made_from() -> None:
    shown = curve_view(SHIPPED["mxfp4-block"]).drawn
    assert shown == drawn()
    given, packed = (line.values for line in shown.chart.lines)
    assert len(given) == len(packed) == 32 and len({abs(value or 0.0) for value in packed}) <= 8
    assert all(abs((a or 0.0) - (b or 0.0)) <= 2.0**-3 for a, b in zip(given, packed, strict=True)), "scale 2^-3"
