"""Named traffic, from the TOML files in `presets/traffic/`."""

import functools
from collections.abc import Sequence

import msgspec

from tokendyno.backend.errors import unknown
from tokendyno.backend.files.toml import read_toml
from tokendyno.backend.paths import PRESETS
from tokendyno.backend.traffic.requests import Draw, Limits, Traffic, draw


class TrafficPreset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Traffic with a name: what it is for, and what it is drawn from."""

    name: str
    title: str
    summary: str
    draw: Draw
    concurrent: int = 16
    limits: Limits = Limits()
    order: int = 100


@functools.cache
def traffic_presets() -> Sequence[TrafficPreset]:
    """All presets in `presets/traffic/`, in the order in which they are shown; the first suits a CPU."""
    presets = [read_toml(path, TrafficPreset) for path in sorted((PRESETS / "traffic").glob("*.toml"))]
    return tuple(sorted(presets, key=lambda preset: (preset.order, preset.name)))


def traffic_preset(name: str) -> TrafficPreset:
    """The preset of that name. InputError suggests the nearest."""
    known = {preset.name: preset for preset in traffic_presets()}
    if name not in known:
        raise unknown("traffic preset", name, known)
    return known[name]


def drawn(shape: Draw, seed: int, concurrent: int = 16, pages: int = 0, limits: Limits | None = None) -> Traffic:
    """Traffic of drawn requests."""
    return Traffic(draw(shape, seed), concurrent, pages, limits or Limits(), shape.label(seed), shape)
