"""The command `list`: the names that arms, models and GPUs have."""

import argparse
import sys
from typing import Any

import msgspec

from backend.arms.presets import ArmPreset, arm_presets
from backend.cli.documents import ModelEntry
from backend.cli.exit_codes import OK
from backend.cli.files import check_writable, write_json
from backend.cli.models_text import model_entries, models_text
from backend.hardware.gpu_specs import GpuSpec, gpus
from backend.optimizations import all_axes
from backend.terminal import Column, Screen, fold, screen_of, table
from backend.units import bytes_text

WHAT = ("presets", "axes", "gpus", "models")


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


def add_list(add: Any) -> argparse.ArgumentParser:
    """The command and what it lists."""
    sub: argparse.ArgumentParser = add("list", list_names, "list presets, axes with their choices, GPUs and models")
    sub.add_argument("what", nargs="?", choices=WHAT, metavar="WHAT", help=f"{', '.join(WHAT)} (default: all)")
    return sub


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
        model_entries() if "models" in asked else [],
    )
    if options.json != "-":
        print(list_text(found, screen_of(sys.stdout, options.color)))
    write_json(options.json, found)
    return OK


def list_text(found: ListDocument, screen: Screen) -> str:
    """A section for each list that was asked for."""
    sections = []
    if found.presets:
        rows = [[preset.name, preset.summary] for preset in found.presets]
        sections.append(["Presets, each an arm by its name:", *_names(rows, screen)])
    if found.axes:
        lines = ["Axes, of which an arm is written, such as cache=static,compile=default:"]
        for axis in found.axes:
            rows = [[f"{name}{' *' * (name == axis.default)}", what] for name, what in axis.choices.items()]
            lines += [f"  {axis.name}", *_names(rows, screen, 4)]
        sections.append([*lines, "* the default"])
    if found.gpus:
        rows = [
            [gpu.name, " ".join(bytes_text(gpu.memory_bytes)), f"{gpu.bandwidth_bytes_per_s / 1e9:,.0f} GB/s"]
            for gpu in found.gpus
        ]
        columns = [Column(), Column(right=True), Column(right=True)]
        sections.append(["GPUs, for fit --gpu:", *table(columns, rows, screen, indent=2)])
    if found.models:
        sections.append(["Models, for --model:", models_text(found.models, screen)])
    bold = [[screen.paint(line, "bold") for line in fold(first, screen.columns)] for first, *_ in sections]
    return "\n\n".join("\n".join([*first, *rest]) for first, (_, *rest) in zip(bold, sections, strict=True))


def _names(rows: list[list[str]], screen: Screen, indent: int = 2) -> list[str]:
    return table([Column(), Column(prose=True)], rows, screen, indent)
