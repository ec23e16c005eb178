"""`tokendyno fit`: which quantizations and caches fit, and how a model is split over GPUs."""

import argparse
import contextlib
from pathlib import Path
from typing import Any

import msgspec

from tokendyno.backend import hardware
from tokendyno.backend.cli.files import check_folder, check_writable, give
from tokendyno.backend.cli.main import OK
from tokendyno.backend.cli.options import Add, add_model
from tokendyno.backend.cli.progress import say
from tokendyno.backend.cli.stored import add_history
from tokendyno.backend.cli.terminal import Block, Column, Line, Row, Styled, Table
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
from tokendyno.backend.models import resolve
from tokendyno.backend.runs.store import Store

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
        parts = ShardingDocument(split.facts.model, split.choice, split.rank_bytes, list(split.rows))
        give(options, sharding_blocks(split), parts)
        return OK
    found, ran = fit_of(options)
    give(options, fit_blocks(found, options.all, ran), fit_document(found, ran))
    return OK


def fit_of(options: argparse.Namespace) -> tuple[Fit, Measured | None]:
    """The table, and the run that measured what fits."""
    device = device_of(hardware.detect(), options.gpu, options.vram)
    found = fit_table.fit(options.model, device, options.context, options.batch, options.models_dir, gpus=options.gpus)
    return found, _measured(found, options.history)


def fit_document(found: Fit, ran: Measured | None) -> dict[str, Any]:
    """The JSON document."""
    return found.as_json() | {"answer": answer_view(found), "measured": ran}


def _measured(found: Fit, history: Path) -> Measured | None:
    """The run that measured what fits, in this history, which is not made for it, or of those that are shipped."""
    path = history.expanduser()
    try:
        with contextlib.closing(Store(path if path.exists() else None)) as store:
            listing = Listing(store, LIMITS["local"])
            return measured(found, listing, LOCAL_USER)
    except InputError as error:
        say(f"note: the history was not looked through for a measured run. {error}")
        return None


def fit_blocks(found: Fit, everything: bool = False, ran: Measured | None = None) -> list[Block]:
    """The answer, the main rows or all of them, and remarks."""
    shown = found.rows if everything else found.main
    headings = [Column(name, right=name in _NUMBERS, optional=name in _OPTIONAL) for name in columns(found)]
    rows: list[Row] = []
    for row in shown:
        sign, *rest = cells(found, row)
        remark = f"Would not run here: {row.not_here}" if found.device.here and row.not_here else ""
        rows.append([Styled(sign, _STYLES[row.margin]), *rest, remark])
    more = len(found.rows) - len(shown)
    said: list[Line] = [heading(found), Styled(answer(found), "bold")]
    if found.smallest.found is not None and found.smallest.found.choices:
        said.append(f"As an arm: {arm_text(found.smallest.found.choices)}")
    return [
        [*said, *([ran.words] if ran is not None else [])],
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
    what = "the smallest arrangement of a model that fits on a GPU, all quantizations and caches, and roofline bounds"
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
    add_history(sub)
    sub.add_argument("--all", action="store_true", help="all rows, not only one for each quantization")
