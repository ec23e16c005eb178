"""The figures of arms side by side, for a terminal."""

from collections.abc import Mapping, Sequence

from backend.terminal import Column, Screen, table
from backend.views.differences import Difference
from backend.views.tile import Tile

BESIDE = 100
"""From this many columns on, notes stand beside the figures; on a narrower terminal they stand under them."""


def figures_table(
    arms: Sequence[str], figures: Sequence[Sequence[Tile]], screen: Screen, against: Mapping[str, Difference]
) -> list[str]:
    """A line for each figure that some arm has; `against`: one arm against the other, by the figure's key."""
    known = [{tile.key: tile for tile in found} for found in figures]
    labels = {tile.key: tile.label for found in figures for tile in found}
    narrow = 0 < screen.columns < BESIDE
    columns = [Column(prose=narrow), *(Column(name, right=True) for name in arms)]
    columns += [Column(), Column(prose=True, below=narrow), Column(below=True)]
    rows = []
    for key, label in labels.items():
        tiles = [found.get(key, Tile(key, label, "n/a", "")) for found in known]
        values = [f"{tile.value} {tile.unit}".strip() for tile in tiles]
        said = against.get(key)
        if said is not None and said.better in arms:
            best = arms.index(said.better)
            values[best] = screen.paint(values[best], "green")
        rows.append([label, *values, said.text if said else "", *_notes(arms, tiles)])
    return table(columns, rows, screen)


def _notes(arms: Sequence[str], tiles: Sequence[Tile]) -> tuple[str, str]:
    """What all arms have in common stands beside the figures, what they have not under them."""
    notes = [tile.note for tile in tiles]
    if len(set(notes)) == 1:
        return notes[0], ""
    return "", "; ".join(f"{name}: {note}" for name, note in zip(arms, notes, strict=True) if note)
