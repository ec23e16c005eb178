"""`tokendyno fit`: which quantizations and caches fit, and how a model is split over GPUs."""

import argparse

import msgspec

from tokendyno.backend import hardware
from tokendyno.backend.cli.files import check_folder, check_writable, give
from tokendyno.backend.cli.main import OK
from tokendyno.backend.cli.options import Add, add_model
from tokendyno.backend.cli.terminal import Block, Column, Row, Styled, Table
from tokendyno.backend.fit import table as fit_table
from tokendyno.backend.fit.device import device_of
from tokendyno.backend.fit.row import Margin
from tokendyno.backend.fit.sharding import SHARDING_COLUMNS, Sharding, ShardRow, sharding, sharding_cells
from tokendyno.backend.fit.table import DEFAULT_CONTEXT, Fit
from tokendyno.backend.fit.text import best, cells, columns, heading, remarks
from tokendyno.backend.models import resolve

_STYLES: dict[Margin, str] = {"comfortable": "green", "tight": "yellow", "does not fit": "red"}
_OPTIONAL = {
    "Workspace",
    "Activations",
    "Runtime",
    "Weights",
    "KV cache size",
    "Longest context",
    "Longest input",
    "Would do",
}
"""What a narrow terminal may leave out."""

_NUMBERS = _OPTIONAL - {"Would do"} | {"Peak", "Margin", "Bound per token", "Bound per pass"}


class ShardingDocument(msgspec.Struct, frozen=True):
    """How a choice of `parallel` splits a model."""

    model: str
    choice: str
    rank_bytes: int
    rows: list[ShardRow]
    kind: str = "sharding"
    schema: int = 3


def fit(options: argparse.Namespace) -> int:
    """What fits, or how the model is split."""
    check_writable(options.json)
    check_folder(options.models_dir)
    if options.sharding:
        name = options.model.removeprefix("random:")
        split = sharding(resolve(f"random:{name}", options.models_dir), options.sharding)
        document = ShardingDocument(split.facts.model, split.choice, split.rank_bytes, list(split.rows))
        give(options, sharding_blocks(split), document)
        return OK
    device = device_of(hardware.detect(), options.gpu, options.vram)
    found = fit_table.fit(options.model, device, options.context, options.batch, options.models_dir, gpus=options.gpus)
    give(options, fit_blocks(found, options.all), found.as_json())
    return OK


def fit_blocks(found: Fit, everything: bool = False) -> list[Block]:
    """The answer, the main rows or all of them, and remarks."""
    shown = found.rows if everything else found.main
    headings = [Column(name, right=name in _NUMBERS, optional=name in _OPTIONAL) for name in columns(found)]
    rows: list[Row] = []
    for row in shown:
        sign, *rest = cells(found, row)
        remark = f"Would not run here: {row.not_here}" if found.device.here and row.not_here else ""
        rows.append([Styled(sign, _STYLES[row.margin]), *rest, remark])
    more = len(found.rows) - len(shown)
    return [
        [heading(found), Styled(best(found), "bold")],
        [
            Table([*headings, Column(below=True)], rows),
            *([f"{more} more rows, with other caches: --all"] if more else []),
        ],
        remarks(found),
    ]


def sharding_blocks(found: Sharding) -> list[Block]:
    """How each parameter is split, with a line of sums."""
    headings = [Column(name, right=name not in ("Parameter", "How")) for name in SHARDING_COLUMNS]
    return [[found.heading], [Table(headings, [sharding_cells(row) for row in found.rows])]]


def add_commands(add: Add) -> None:
    """The command and its options."""
    what = "which quantizations and caches fit on a GPU, and their roofline bounds"
    sub = add("fit", fit, what, "Nothing is loaded: a folder with a config.json is enough.", json=True)
    add_model(sub)
    size = sub.add_mutually_exclusive_group()
    size.add_argument("--gpu", metavar="NAME", help="a GPU of the catalogue, such as RTX-4090 (default: this machine)")
    size.add_argument("--vram", metavar="SIZE", help="the memory of a GPU that is not in the catalogue, such as 24GiB")
    sub.add_argument(
        "--context",
        type=int,
        metavar="N",
        help=f"tokens in the KV cache, or the model's maximum if that is less (default: {DEFAULT_CONTEXT:,})",
    )
    sub.add_argument("--batch", type=int, default=1, metavar="N", help="sequences in one batch")
    sub.add_argument("--gpus", type=int, default=1, metavar="N", help="such GPUs share the model; bytes are of one")
    sub.add_argument(
        "--sharding",
        metavar="CHOICE",
        help="instead: how a choice of parallel, such as tensor-2, splits each parameter",
    )
    sub.add_argument("--all", action="store_true", help="all rows, not only one for each quantization")
