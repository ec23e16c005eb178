"""The curves of claims were measured by the commands that they name."""

import shlex

import pytest

from tokendyno.backend.ablation.sweep_view import sweep_table
from tokendyno.backend.claims.curves import CURVES, curve_view, read_curve
from tokendyno.backend.claims.declared import Curve, shipped_claims
from tokendyno.backend.cli.main import main
from tokendyno.backend.cli.parser import make_parser

SHIPPED = [curve for claim in shipped_claims().claims for curve in claim.curves]


@pytest.mark.parametrize("curve", SHIPPED, ids=lambda curve: str(curve.name))
def test_a_curve_is_the_whole_sweep_of_its_command(curve: Curve) -> None:
    sweep = read_curve(curve)
    assert sweep is not None and sweep.complete
    asked = make_parser("sweep").parse_args(["sweep", *shlex.split(curve.sweep)])
    assert {name: values.split(",") for name, _, values in (one.partition("=") for one in asked.over)} == sweep.over
    assert (asked.model, asked.rounds) == (sweep.model, sweep.rounds)
    assert sweep.traffic or asked.max_new_tokens == sweep.workload.max_new_tokens
    assert all(point.trials == sweep.rounds and not point.refused and not point.doubtful for point in sweep.points)


def test_every_file_belongs_to_a_curve() -> None:
    assert {path.stem for path in CURVES.iterdir()} == {curve.name for curve in SHIPPED}


def test_windows_halve_the_cache_of_long_prompts_on_page_and_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    (curve,) = [curve for curve in SHIPPED if curve.name == "window-pocket-cpu"]
    sweep = read_curve(curve)
    assert sweep is not None
    view = curve_view(curve, sweep)
    whole, windowed = view.chart.lines
    assert view.numbers and view.places[-1] == "2,000" and view.horizontal == "Prompt tokens"
    assert whole.values[-1] == pytest.approx(2015 * 4 / 1024, rel=0.01), "MiB: 4 KiB a token in float32"
    assert windowed.values[-1] is not None and 0.5 < windowed.values[-1] / (whole.values[-1] or 1) < 0.55
    assert len(sweep_table(sweep.points, sweep.over, None)) == 1 + 2 * len(view.places)
    assert main(["claims", "kv-half"]) == 0
    printed = capsys.readouterr().out
    assert all(text in printed for text in (view.title, view.command, whole.texts[-1], windowed.texts[-1]))
