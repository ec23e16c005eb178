"""`tokendyno list` and `models`: the names that arms, models and GPUs have."""

import argparse

import msgspec

from tokendyno.backend.arms.presets import ArmPreset, arm_presets
from tokendyno.backend.cli.files import give
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
    """The list that was asked for, or all of them; those that were not are empty."""

    presets: list[ArmPreset]
    axes: list[AxisEntry]
    gpus: list[GpuSpec]
    models: list[ModelEntry]
    kind: str = "list"
    schema: int = 3


def list_names(options: argparse.Namespace) -> int:
    kinds = (options.what,) if options.what else WHAT
    document = ListDocument(
        list(arm_presets()) if "presets" in kinds else [],
        [
            AxisEntry(axis.name, axis.title, axis.default, {choice.name: choice.summary for choice in axis.choices})
            for axis in (all_axes() if "axes" in kinds else ())
        ],
        list(gpus()) if "gpus" in kinds else [],
        _model_entries() if "models" in kinds else [],
    )
    give(options, _sections(document), document)
    return OK


def models(options: argparse.Namespace) -> int:
    entries = _model_entries()
    give(options, _models(entries), ModelsDocument(entries))
    return OK


def _model_entries() -> list[ModelEntry]:
    return [
        ModelEntry(model.name, model.title, model.kind, model.repo, model.note, model.name == DEFAULT_MODEL)
        for model in catalogue()
    ]


def _models(entries: list[ModelEntry]) -> list[Block]:
    """A line for each model with its remark under it, and what else is accepted."""
    rows = [
        [entry.name, entry.kind, f"{entry.title}{' (default)' if entry.default else ''}", entry.note]
        for entry in entries
    ]
    columns = [Column("name"), Column("kind"), Column("model", prose=True), Column(below=True)]
    return [[Table(columns, rows)], [_ALSO]]


def _sections(document: ListDocument) -> list[Block]:
    sections: list[Block] = []
    if document.presets:
        rows = [[preset.name, preset.summary] for preset in document.presets]
        sections.append([Styled("Presets, each an arm by its name:", "bold"), Table(_NAMES, rows, indent=2)])
    if document.axes:
        lines: list[Line] = [Styled("Axes, of which an arm is written, such as cache=static,compile=default:", "bold")]
        for axis in document.axes:
            rows = [[f"{name}{' *' * (name == axis.default)}", summary] for name, summary in axis.choices.items()]
            lines += [f"  {axis.name}", Table(_NAMES, rows, indent=4)]
        sections.append([*lines, "* the default"])
    if document.gpus:
        rows = [
            [gpu.name, " ".join(bytes_text(gpu.memory_bytes)), f"{gpu.bandwidth_bytes_per_s / 1e9:,.0f} GB/s"]
            for gpu in document.gpus
        ]
        columns = [Column(), Column(right=True), Column(right=True)]
        sections.append([Styled("GPUs, for fit --gpu:", "bold"), Table(columns, rows, indent=2)])
    if document.models:
        table, also = _models(document.models)
        sections += [[Styled("Models, for --model:", "bold"), *table], also]
    return sections


def add_commands(add: Add) -> None:
    sub = add("list", list_names, "list presets, axes with their choices, GPUs and models", json=True)
    sub.add_argument("what", nargs="?", choices=WHAT, metavar="WHAT", help=f"{', '.join(WHAT)} (default: all)")
    add("models", models, "list the models of the catalogue", json=True)
