"""`tokendyno fit`: which quantizations and caches fit, and how a model is split over GPUs."""

import argparse
import contextlib
from pathlib import Path
from typing import Any

import msgspec

from tokendyno.backend import hardware
from tokendyno.backend.cli.files import check_folder, give
from tokendyno.backend.cli.main import OK
from tokendyno.backend.cli.options import Add, add_model, add_number
from tokendyno.backend.cli.progress import say
from tokendyno.backend.cli.stored import add_history
from tokendyno.backend.cli.terminal import Block, Column, Line, Row, Styled, Table
from tokendyno.backend.config import RANGES
from tokendyno.backend.errors import InputError
from tokendyno.backend.fit import table as fit_table
from tokendyno.backend.fit.device import device_of
from tokendyno.backend.fit.row import Margin
from tokendyno.backend.fit.sharding import SHARDING_COLUMNS, Sharding, ShardRow, sharding, sharding_cells
from tokendyno.backend.fit.table import DEFAULT_CONTEXT, Fit
from tokendyno.backend.fit.text import answer, arm_text, cells, columns, heading, remarks
from tokendyno.backend.fit.view import answer_view
from tokendyno.backend.history.measured import Measured, measured
from tokendyno.backend.history.rows import Listing
from tokendyno.backend.hosting.limits import LIMITS
from tokendyno.backend.hosting.visitor import LOCAL_USER
from tokendyno.backend.models import RANDOM, resolve, without
from tokendyno.backend.predict.parallel import MAX_GPUS
from tokendyno.backend.runs.store import Store
from tokendyno.backend.units import plural

_STYLES: dict[Margin, str] = {"comfortable": "green", "tight": "yellow", "does not fit": "red"}
_OPTIONAL = {
    "Dtype",
    "Workspace",
    "Activations",
    "Runtime",
    "Weights",
    "KV cache size",
    "Longest context",
    "Longest input",
    "Would do",
}
"""Columns that a narrow terminal may leave out."""

_NUMBERS = _OPTIONAL - {"Dtype", "Would do"} | {"Peak", "Margin", "Bound per token", "Bound per pass"}


class ShardingDocument(msgspec.Struct, frozen=True):
    """How a choice of `parallel` splits a model."""

    model: str
    choice: str
    rank_bytes: int
    rows: list[ShardRow]
    kind: str = "sharding"
    schema: int = 3


def fit(options: argparse.Namespace) -> int:
    check_folder(options.models_dir)
    if options.sharding:
        name = without(RANDOM, options.model)
        split = sharding(resolve(RANDOM + name, options.models_dir), options.sharding)
        document = ShardingDocument(split.facts.model, split.choice, split.rank_bytes, list(split.rows))
        give(options, sharding_blocks(split), document)
        return OK
    table, run = fit_of(options)
    give(options, fit_blocks(table, options.all, run), fit_document(table, run))
    return OK


def fit_of(options: argparse.Namespace) -> tuple[Fit, Measured | None]:
    device = device_of(hardware.detect(), options.gpu, options.vram)
    table = fit_table.fit(options.model, device, options.context, options.batch, options.models_dir, gpus=options.gpus)
    return table, _measured(table, options.history)


def fit_document(table: Fit, run: Measured | None) -> dict[str, Any]:
    return table.as_json() | {"answer": answer_view(table), "measured": run}


def _measured(table: Fit, history: Path) -> Measured | None:
    """The run that measured what fits: of this history, if there is one, or a shipped one."""
    try:
        with contextlib.closing(Store(history if history.exists() else None)) as store:
            return measured(table, Listing(store, LIMITS["local"]), LOCAL_USER)
    except InputError as error:
        say(f"note: the history was not looked through for a measured run. {error}")
        return None


def fit_blocks(table: Fit, everything: bool = False, run: Measured | None = None) -> list[Block]:
    """The answer, the main rows or all of them, and remarks."""
    shown = table.rows if everything else table.main
    headings = [Column(name, right=name in _NUMBERS, optional=name in _OPTIONAL) for name in columns(table)]
    rows: list[Row] = []
    for row in shown:
        sign, *rest = cells(table, row)
        remark = f"Would not run here: {row.not_here}" if table.device.here and row.not_here else ""
        rows.append([Styled(sign, _STYLES[row.margin]), *rest, remark])
    head: list[Line] = [heading(table), Styled(answer(table), "bold")]
    if table.smallest.found is not None and table.smallest.found.choices:
        head.append(f"As an arm: {arm_text(table.smallest.found.choices)}")
    if run is not None:
        head.append(run.words)
    body: list[Line] = [Table([*headings, Column(below=True)], rows)]
    if hidden := len(table.rows) - len(shown):
        body.append(f"{plural(hidden, 'more row')}, with other caches: --all")
    return [head, body, remarks(table)]


def sharding_blocks(split: Sharding) -> list[Block]:
    headings = [Column(name, right=name not in ("Parameter", "How")) for name in SHARDING_COLUMNS]
    return [[split.heading], [Table(headings, [sharding_cells(row) for row in split.rows])]]


def add_commands(add: Add) -> None:
    summary = (
        "the smallest arrangement of a model that fits on a GPU, all quantizations and caches, and roofline bounds"
    )
    sub = add("fit", fit, summary, "Nothing is loaded: a folder with a config.json is enough.", json=True)
    add_model(sub)
    size = sub.add_mutually_exclusive_group()
    size.add_argument("--gpu", metavar="NAME", help="a GPU of the catalogue, such as RTX-4090 (default: this machine)")
    size.add_argument("--vram", metavar="SIZE", help="the memory of a GPU that is not in the catalogue, such as 24GiB")
    add_number(
        sub,
        "--context",
        None,
        f"tokens in the KV cache, or the model's maximum if that is less (default: {DEFAULT_CONTEXT:,})",
    )
    add_number(sub, "--batch", 1, "sequences in one batch", *RANGES["batch_size"])
    add_number(sub, "--gpus", 1, "such GPUs share the model; bytes are of one", 1, MAX_GPUS)
    sub.add_argument(
        "--sharding",
        metavar="CHOICE",
        help="instead: how a choice of parallel, such as tensor-2, splits each parameter",
    )
    add_history(sub)
    sub.add_argument("--all", action="store_true", help="all rows, not only one for each quantization")
