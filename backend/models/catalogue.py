"""The models known by name, from presets/models.toml."""

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from tokendyno.backend.errors import InputError
from tokendyno.backend.files.toml import invalid, read_toml, refuse_duplicates
from tokendyno.backend.models.facts import ModelKind
from tokendyno.backend.paths import PRESETS

DEFAULT_MODEL = "pocket"


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One model of the catalogue.

    table         its config as JSON text, `model_type` included, as AutoConfig.for_model takes it; "" with `folder`
    repo          Hub id; "" when the weights are embedded in `folder`
    gated         its licence must be accepted on the Hub before anything can be fetched
    """

    name: str
    title: str
    kind: ModelKind
    table: str
    repo: str
    gated: bool
    quantization: str | None
    note: str
    sources: tuple[str, ...]
    folder: Path | None

    @property
    def config(self) -> str:
        """The config as JSON text, read lazily for an embedded model. InputError if that file is missing."""
        return _embedded_config(self.folder) if self.folder else self.table


class _ModelTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    title: str
    kind: ModelKind
    note: str
    sources: list[str]
    repo: str = ""
    gated: bool = False
    quantization: str = ""
    config: dict[str, Any] = msgspec.field(default_factory=dict)
    nulls: list[str] = []


class _CatalogueFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: list[_ModelTable]


def catalogue() -> tuple[CatalogueEntry, ...]:
    """All models known by name, the default first. Read once."""
    return _catalogue(PRESETS / "models.toml")


def find(name: str) -> CatalogueEntry | None:
    """The entry with this name or Hub id, ignoring case; None if there is none."""
    wanted = name.casefold()
    return next((e for e in catalogue() if wanted and wanted in (e.name.casefold(), e.repo.casefold())), None)


@functools.lru_cache(maxsize=1)
def _catalogue(path: Path) -> tuple[CatalogueEntry, ...]:
    return read_catalogue(path)


def read_catalogue(path: Path) -> tuple[CatalogueEntry, ...]:
    """The entries of one file; InputError names the file and what is wrong in it."""
    entries = tuple(_entry(table, path) for table in read_toml(path, _CatalogueFile).model)
    refuse_duplicates(path, (entry.name.casefold() for entry in entries))
    return entries


def _entry(table: _ModelTable, path: Path) -> CatalogueEntry:
    folder = None if table.repo else path.parent / "models" / table.name
    if folder and table.config:
        raise invalid(path, f"{table.name!r} has no repo, so its config must be in {folder}.")
    return CatalogueEntry(
        name=table.name,
        title=table.title,
        kind=table.kind,
        table="" if folder else os.fsdecode(msgspec.json.encode(table.config | dict.fromkeys(table.nulls))),
        repo=table.repo,
        gated=table.gated,
        quantization=table.quantization or None,
        note=table.note,
        sources=tuple(table.sources),
        folder=folder,
    )


def _embedded_config(folder: Path) -> str:
    try:
        return (folder / "config.json").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{folder} has no readable config.json. Reinstall tokendyno.") from None
