"""`tokendyno list` and `models`: the names that arms, models and GPUs have."""

import argparse

import msgspec

from tokendyno.backend.arms.presets import ArmPreset, arm_presets
from tokendyno.backend.cli.files import check_writable, give
from tokendyno.backend.cli.main import OK
from tokendyno.backend.cli.options import Add
from tokendyno.backend.cli.terminal import Block, Column, Line, Styled, Table
from tokendyno.backend.hardware.gpu_specs import GpuSpec, gpus
from tokendyno.backend.models import DEFAULT_MODEL, catalogue
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.units import bytes_text

WHAT = ("presets", "axes", "gpus", "models")
_NAMES = (Column(), Column(prose=True))
_ALSO = (
    "Also accepted: a Hub id such as org/name@revision, a local folder, a .gguf file, or random:NAME (that "
    "architecture with random weights, no download)."
)


class ModelEntry(msgspec.Struct, frozen=True):
    """One model of the catalogue."""

    name: str
    title: str
    kind: str
    repo: str
    note: str
    default: bool


class ModelsDocument(msgspec.Struct, frozen=True):
    """The catalogue."""

    models: list[ModelEntry]
    kind: str = "models"
    schema: int = 3


class AxisEntry(msgspec.Struct, frozen=True):
    """An axis, and what each of its choices does, by name."""

    name: str
    title: str
    default: str
    choices: dict[str, str]


class ListDocument(msgspec.Struct, frozen=True):
    """What was asked for; the other lists are empty."""

    presets: list[ArmPreset]
    axes: list[AxisEntry]
    gpus: list[GpuSpec]
    models: list[ModelEntry]
    kind: str = "list"
    schema: int = 3


def list_names(options: argparse.Namespace) -> int:
    """All lists, or one of them."""
    check_writable(options.json)
    asked = (options.what,) if options.what else WHAT
    found = ListDocument(
        list(arm_presets()) if "presets" in asked else [],
        [
            AxisEntry(axis.name, axis.title, axis.default, {choice.name: choice.summary for choice in axis.choices})
            for axis in (all_axes() if "axes" in asked else ())
        ],
        list(gpus()) if "gpus" in asked else [],
        _model_entries() if "models" in asked else [],
    )
    give(options, _sections(found), found)
    return OK


def models(options: argparse.Namespace) -> int:
    """List the catalogue."""
    check_writable(options.json)
    entries = _model_entries()
    give(options, _models(entries), ModelsDocument(entries))
    return OK


def _model_entries() -> list[ModelEntry]:
    return [ModelEntry(e.name, e.title, e.kind, e.repo, e.note, e.name == DEFAULT_MODEL) for e in catalogue()]


def _models(entries: list[ModelEntry]) -> list[Block]:
    """A line for each model with its remark under it, and what else is accepted."""
    rows = [
        [entry.name, entry.kind, f"{entry.title}{' (default)' if entry.default else ''}", entry.note]
        for entry in entries
    ]
    columns = [Column("name"), Column("kind"), Column("model", prose=True), Column(below=True)]
    return [[Table(columns, rows)], [_ALSO]]


def _sections(found: ListDocument) -> list[Block]:
    """A section for each list that was asked for."""
    sections: list[Block] = []
    if found.presets:
        rows = [[preset.name, preset.summary] for preset in found.presets]
        sections.append([Styled("Presets, each an arm by its name:", "bold"), Table(_NAMES, rows, indent=2)])
    if found.axes:
        lines: list[Line] = [Styled("Axes, of which an arm is written, such as cache=static,compile=default:", "bold")]
        for axis in found.axes:
            rows = [[f"{name}{' *' * (name == axis.default)}", what] for name, what in axis.choices.items()]
            lines += [f"  {axis.name}", Table(_NAMES, rows, indent=4)]
        sections.append([*lines, "* the default"])
    if found.gpus:
        rows = [
            [gpu.name, " ".join(bytes_text(gpu.memory_bytes)), f"{gpu.bandwidth_bytes_per_s / 1e9:,.0f} GB/s"]
            for gpu in found.gpus
        ]
        columns = [Column(), Column(right=True), Column(right=True)]
        sections.append([Styled("GPUs, for fit --gpu:", "bold"), Table(columns, rows, indent=2)])
    if found.models:
        named, also = _models(found.models)
        sections += [[Styled("Models, for --model:", "bold"), *named], also]
    return sections


def add_commands(add: Add) -> None:
    """Both commands."""
    sub = add("list", list_names, "list presets, axes with their choices, GPUs and models", json=True)
    sub.add_argument("what", nargs="?", choices=WHAT, metavar="WHAT", help=f"{', '.join(WHAT)} (default: all)")
    add("models", models, "list the models of the catalogue", json=True)
