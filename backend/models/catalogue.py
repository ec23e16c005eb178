"""The models known by name, read from presets/models.toml."""

import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from backend.errors import InputError, unknown
from backend.models.facts import ModelKind

DEFAULT_MODEL = "pocket"
PRESETS_DIR = Path(__file__).resolve().parents[2] / "presets"


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One model of the catalogue.

    config        the architecture as JSON text, as AutoConfig.for_model takes it (`model_type` included); an
                  embedded model's is read when it is asked for, so that one broken folder spoils nothing else
    repo          Hub id; "" when the weights are embedded in `folder`
    gated         its licence must be accepted on the Hub before anything can be fetched
    quantization  method the published checkpoint is packed with, None for plain weights
    sources       where the facts were read
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
        """The architecture; InputError if an embedded model's file is not there."""
        return _embedded_config(self.folder) if self.folder else self.table


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    title: str
    kind: ModelKind
    note: str
    sources: list[str]
    repo: str = ""
    gated: bool = False
    quantization: str = ""
    config: dict[str, Any] = msgspec.field(default_factory=dict)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    model: list[_Row]


def catalogue() -> tuple[CatalogueEntry, ...]:
    """All known models, the default first. Read once."""
    return _catalogue(PRESETS_DIR / "models.toml")


def find(name: str) -> CatalogueEntry | None:
    """The entry with this name or Hub id, upper and lower case alike."""
    wanted = name.casefold()
    return next((e for e in catalogue() if wanted and wanted in (e.name.casefold(), e.repo.casefold())), None)


@functools.lru_cache(maxsize=1)
def _catalogue(path: Path) -> tuple[CatalogueEntry, ...]:
    return read_catalogue(path)


def read_catalogue(path: Path) -> tuple[CatalogueEntry, ...]:
    """The entries of one file; strict, so that a misspelt key is an error and not a default."""
    try:
        value = msgspec.toml.decode(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}). Install tokendyno again.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid TOML: {error}. Correct the file.") from None
    _check_keys(value, path)
    try:
        rows = msgspec.convert(value, _File, strict=True).model
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: {error}. Correct the file.") from None
    entries = tuple(_entry(row, path.parent) for row in rows)
    names = [entry.name.casefold() for entry in entries]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise InputError(f"{path}: the name {twice!r} stands there twice. Rename one of them.")
    return entries


def _check_keys(value: Any, path: Path) -> None:
    """Name the nearest valid key for one that is not known; msgspec finds everything else."""
    rows = value.get("model") if isinstance(value, dict) else None
    tables: list[tuple[Any, tuple[str, ...]]] = [(value, _File.__struct_fields__)]
    tables += [(row, _Row.__struct_fields__) for row in rows] if isinstance(rows, list) else []
    for table, valid in tables:
        for key in sorted(table.keys() - set(valid)) if isinstance(table, dict) else ():
            raise InputError(f"{path}: {unknown('key', key, valid)}")


def _entry(row: _Row, presets: Path) -> CatalogueEntry:
    folder = None if row.repo else presets / "models" / row.name
    if folder and row.config:
        raise InputError(f"{presets / 'models.toml'}: {row.name!r} has no repo, so its config lies in {folder}.")
    return CatalogueEntry(
        name=row.name,
        title=row.title,
        kind=row.kind,
        table="" if folder else os.fsdecode(msgspec.json.encode(row.config)),
        repo=row.repo,
        gated=row.gated,
        quantization=row.quantization or None,
        note=row.note,
        sources=tuple(row.sources),
        folder=folder,
    )


def _embedded_config(folder: Path) -> str:
    try:
        return (folder / "config.json").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{folder} holds no readable config.json. Install tokendyno again.") from None
