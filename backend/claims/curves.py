"""The curves of claims: sweeps that were measured once and ship, as `tokendyno sweep --json` writes them."""

from pathlib import Path

import msgspec

from tokendyno.backend.ablation.sweep import SIZES, SweepDocument, title_of, value_title
from tokendyno.backend.ablation.sweep_view import LineChart, chart_of, first_of
from tokendyno.backend.claims.declared import FOLDER, Curve
from tokendyno.backend.claims.results import machine_name

CURVES = FOLDER / "curves"


class CurveView(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One curve. `horizontal`, `places`, `numbers`: what it runs over, its values, and whether these are lengths."""

    title: str
    machine: str
    horizontal: str
    places: list[str]
    numbers: bool
    chart: LineChart
    command: str


def read_curve(curve: Curve, folder: Path = CURVES) -> SweepDocument | None:
    """The sweep of a curve; None where it was not measured."""
    path = folder / f"{curve.name}.json"
    return msgspec.json.decode(path.read_bytes(), type=SweepDocument) if path.exists() else None


def curve_view(curve: Curve, sweep: SweepDocument) -> CurveView:
    over = sweep.over
    first = first_of(over)
    packages = ", ".join(f"{name} {sweep.versions[name]}" for name in ("torch", "transformers"))
    return CurveView(
        curve.title,
        f"{sweep.model_label}, {machine_name(sweep.machine)}, {packages}",
        title_of(first),
        [value_title(first, value) for value in over[first]],
        first in SIZES,
        chart_of(curve.figure, sweep.points, over),
        curve.line,
    )
