"""The models known by name, from presets/models.toml."""

import functools
from pathlib import Path
from typing import Any

import msgspec

from tokendyno.backend.files.toml import read_toml, refuse_duplicates
from tokendyno.backend.models.facts import ModelKind
from tokendyno.backend.paths import PRESETS

DEFAULT_MODEL = "pocket"


class CatalogueEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One model of the catalogue; the file says what each field is.

    repo          Hub id; "" where the weights are embedded in `folder`
    gated         its licence must be accepted on the Hub before anything can be fetched
    table, nulls  its config, `model_type` included, but for the fields that are null
    """

    name: str
    title: str
    kind: ModelKind
    note: str
    sources: tuple[str, ...]
    repo: str = ""
    gated: bool = False
    quantization: str | None = None
    table: dict[str, Any] = msgspec.field(name="config", default_factory=dict)
    nulls: tuple[str, ...] = ()

    @property
    def folder(self) -> Path | None:
        """The folder of an embedded model; None for one of the Hub."""
        return None if self.repo else PRESETS / "models" / self.name

    @property
    def config(self) -> str:
        """Its config as JSON text, as AutoConfig.for_model takes it."""
        if self.folder is None:
            return msgspec.json.encode(self.table | dict.fromkeys(self.nulls)).decode()
        return (self.folder / "config.json").read_text(encoding="utf-8")


class _CatalogueFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: tuple[CatalogueEntry, ...]


@functools.cache
def catalogue() -> tuple[CatalogueEntry, ...]:
    return read_catalogue(PRESETS / "models.toml")


def find(name: str) -> CatalogueEntry | None:
    """The entry with this name or Hub id, ignoring case; None if there is none."""
    name = name.casefold()
    return next((e for e in catalogue() if name and name in (e.name.casefold(), e.repo.casefold())), None)


def read_catalogue(path: Path) -> tuple[CatalogueEntry, ...]:
    """The entries of one file; InputError names the file and what is wrong in it."""
    entries = read_toml(path, _CatalogueFile).model
    refuse_duplicates(path, (entry.name.casefold() for entry in entries))
    return entries
