"""The catalogue for a terminal."""

from collections.abc import Sequence

from backend.cli.documents import ModelEntry
from backend.models import DEFAULT_MODEL, catalogue
from backend.terminal import Column, Screen, fold, table


def model_entries() -> list[ModelEntry]:
    """The catalogue."""
    return [ModelEntry(e.name, e.title, e.kind, e.repo, e.note, e.name == DEFAULT_MODEL) for e in catalogue()]


def models_text(entries: Sequence[ModelEntry], screen: Screen) -> str:
    """A line for each model with its remark under it, and what else is accepted."""
    columns = [Column("name"), Column("kind"), Column("model", prose=True), Column(below=True)]
    rows = [
        [entry.name, entry.kind, f"{entry.title}{' (default)' if entry.default else ''}", entry.note]
        for entry in entries
    ]
    also = (
        "Also accepted: a Hub id such as org/name@revision, a local folder, a .gguf file, or random:NAME (that "
        "architecture with random weights, no download)."
    )
    return "\n".join([*table(columns, rows, screen), "", *fold(also, screen.columns)])
