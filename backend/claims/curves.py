"""The curves of claims, which ship: sweeps, as `tokendyno sweep --json` writes them, and what tools draw."""

import msgspec

from tokendyno.backend.ablation.sweep import SIZES, SweepDocument, title_of, value_title
from tokendyno.backend.ablation.sweep_view import LineChart, chart_of, first_of
from tokendyno.backend.claims.declared import FOLDER, Curve
from tokendyno.backend.claims.results import machine_name

CURVES = FOLDER / "curves"


class Drawn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A chart with what it runs over and its values. `numbers`: these are lengths; `source`: what was measured, and
    where."""

    source: str
    horizontal: str
    places: list[str]
    numbers: bool
    chart: LineChart


class CurveView(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One curve of a claim."""

    title: str
    command: str
    drawn: Drawn


def curve_view(curve: Curve) -> CurveView:
    data = (CURVES / f"{curve.name}.json").read_bytes()
    if not curve.figure:
        return CurveView(curve.title, curve.command, msgspec.json.decode(data, type=Drawn))
    sweep = msgspec.json.decode(data, type=SweepDocument)
    first = first_of(sweep.over)
    packages = ", ".join(f"{name} {sweep.versions[name]}" for name in ("torch", "transformers"))
    drawn = Drawn(
        f"{sweep.model_label}, {machine_name(sweep.machine)}, {packages}, {curve.date}",
        title_of(first),
        [value_title(first, value) for value in sweep.over[first]],
        first in SIZES,
        chart_of(curve.figure, sweep.points, sweep.over),
    )
    return CurveView(curve.title, curve.command, drawn)
