"""`tokendyno history`: the runs that are kept, those of the page too."""

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from tokendyno.backend.ablation.courses import titled, trial_note, whole_of
from tokendyno.backend.cli.files import give
from tokendyno.backend.cli.options import Add, add_number
from tokendyno.backend.cli.progress import say
from tokendyno.backend.cli.run_table import run_blocks
from tokendyno.backend.cli.stored import MIN_ID, add_history, own_run
from tokendyno.backend.cli.terminal import Block, Column, Line, Table
from tokendyno.backend.errors import InputError, shown
from tokendyno.backend.history.history import History
from tokendyno.backend.history.pins import FEWEST, MOST, Pin, SideBySide, read_pins
from tokendyno.backend.history.rows import Row, RunList
from tokendyno.backend.history.search import MAX_PAGE, read_search
from tokendyno.backend.hosting.limits import LIMITS
from tokendyno.backend.hosting.visitor import LOCAL_USER
from tokendyno.backend.redact import without_controls
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.store import Store
from tokendyno.backend.units import plural
from tokendyno.backend.views.document import document_of

ACTIONS = ("list", "show", "pins", "name", "note", "delete", "undelete")
MAX_ROWS = 10_000


class HistoryDocument(msgspec.Struct, frozen=True):
    """Runs, the newest first. `total`: all that match, of `kept` altogether."""

    runs: list[Row]
    total: int
    kept: int
    kind: str = "history"
    schema: int = 3


def history(options: argparse.Namespace) -> int:
    action, words = options.action, options.what
    with _opened(options.history) as (history, runs):
        match action:
            case "list":
                if words:
                    raise InputError(f"`history list` takes no name: look for {shown(words[0])} with --words.")
                _list(options, history)
            case "show":
                _show(options, history, runs, _one(history, action, words))
            case "pins":
                if len(words) < FEWEST:
                    raise InputError(f"Which arms? Name {FEWEST} to {MOST}: tokendyno history pins RUN.ARM RUN.ARM ...")
                side_by_side = history.beside([_pin(history, text) for text in words])
                give(options, pins_blocks(side_by_side), side_by_side)
            case "name" | "note":
                run_id, text = _one(history, action, words[:1]), " ".join(words[1:])
                change = history.changes.rename if action == "name" else history.changes.note
                text = change(run_id, text, LOCAL_USER)
                say(f"Run {run_id[:8]} has {f'the {action} {text!r}' if text else f'no {action}'} now.")
            case _:
                _delete(options, history)
    return 0


@contextmanager
def _opened(path: Path) -> Iterator[tuple[History, RunLog]]:
    with closing(Store(path)) as store:
        for message in [*store.messages, *filter(None, [store.trouble])]:
            say(f"note: {message}")
        runs = RunLog(store)
        yield History(store, runs, LIMITS["local"]), runs


def _list(options: argparse.Namespace, history: History) -> None:
    limit = MAX_ROWS if options.all else options.limit
    filters = {
        "q": options.words,
        "model": options.model,
        "axis": options.axis,
        "machine": options.machine,
        "since": options.since,
        "until": options.until,
    }
    page = history.listing.find(read_search(filters, options.page - 1, limit), LOCAL_USER)
    page = msgspec.structs.replace(page, rows=[titled(options.history, row) for row in page.rows])
    give(options, _page_blocks(page), HistoryDocument(page.rows, page.total, page.kept))


def _show(options: argparse.Namespace, history: History, runs: RunLog, run_id: str) -> None:
    row, run = history.listing.one(run_id, LOCAL_USER), runs.get(run_id)
    if row is None or run is None:
        raise InputError(f"Run {run_id[:8]} cannot be read from the history.")
    trial = trial_note(options.history, row.trial)
    blocks = [[*_head(row), *([trial] if trial else [])], *run_blocks(run, options.all, runs.reading)]
    give(options, blocks, document_of(run, runs.reading))


def _delete(options: argparse.Namespace, history: History) -> None:
    action, words = options.action, options.what
    if not words:
        raise InputError(f"Which runs? Name them by the beginning of their ids: tokendyno history {action} ID ...")
    deleted = action == "undelete"
    ids = [_resolved(history, text, deleted) for text in words]
    they_are, them = (f"Run {ids[0][:8]} is", "it") if len(ids) == 1 else (f"{len(ids)} runs are", "them")
    if deleted:
        history.changes.undelete(ids, LOCAL_USER)
        say(f"{they_are} back in the history.")
        return
    rows = [history.listing.one(run_id, LOCAL_USER) for run_id in dict.fromkeys(ids)]
    trials = Counter(row.trial for row in rows if row is not None and row.trial)
    history.changes.delete(ids, LOCAL_USER)
    short = " ".join(run_id[:8] for run_id in ids)
    say(f"{they_are} deleted. For an hour `tokendyno history undelete {short}` has {them} back.")
    for trial, count in trials.items():  # a row of the list stands for all of them
        title = whole_of(options.history, trial)
        say(f"note: This deleted {plural(count, 'trial')} of several ({title}); others are kept.")


# --- which run ------------------------------------------------------------------------------------


def _one(history: History, action: str, words: list[str]) -> str:
    if len(words) != 1:
        raise InputError(f"Which run? Name one by the beginning of its id: tokendyno history {action} ID.")
    return _resolved(history, words[0])


def _pin(history: History, text: str) -> Pin:
    """A pin whose run may be named by the beginning of its id. Runs of others are named by their whole ids."""
    pins = read_pins(text)
    if len(pins) != 1:
        raise InputError(f"{shown(text)!r} is no pin. Write RUN.ARM, such as 5f2a91c0.A, with spaces between two.")
    (pin,) = pins
    return pin._replace(run=own_run(history.listing, pin.run) or pin.run)


def _resolved(history: History, text: str, deleted: bool = False) -> str:
    """The id, which begins with `text`, of a run of one's own; `deleted`: of one that can be had back."""
    if len(text) < MIN_ID:
        raise InputError(f"{shown(text)!r} is too short for a run's id. Give at least {MIN_ID} characters of it.")
    run_id = own_run(history.listing, text, deleted)
    if run_id is None:
        what = "deleted run" if deleted else "run"
        raise InputError(f"There is no {what} {shown(text)!r} in the history. See `tokendyno history`.")
    return run_id


# --- what is shown --------------------------------------------------------------------------------

_COLUMNS = (
    Column("run"),
    Column("when"),
    Column("model", prose=True),
    Column("arms", prose=True),
    Column("machine", prose=True, optional=True),
    Column(below=True),
)


def _page_blocks(page: RunList) -> list[Block]:
    """A line for each run with its verdict under it, and how many there are."""
    if not page.kept:
        return [["No run is kept yet. `tokendyno compare` makes one, and so does Run on the page."]]
    if not page.total:
        return [[f"No run of {page.kept:,} matches. Leave a filter out."]]
    if not page.rows:
        return [[f"{plural(page.total, 'run')}, and none on page {page.page + 1:,}."]]
    rows = [
        [
            row.id[:8],
            _when(row.created),
            ", ".join(filter(None, [row.label or row.model, row.work])),
            without_controls("; ".join(f"{arm.name}: {arm.text}" for arm in row.arms)),
            row.machine,
            _remark(row),
        ]
        for row in page.rows
    ]
    first = page.page * page.per_page
    last = first + len(rows)
    following = f"; --page {page.page + 2} shows the next" if last < page.total else ""
    return [[Table(_COLUMNS, rows)], [f"Runs {first + 1:,} to {last:,} of {page.total:,}{following}."]]


def _head(row: Row) -> Block:
    lines = [f"Run {row.id}, {_when(row.created)}, {_ended(row)}"]
    lines += [f"Name: {row.name}"] if row.name else []
    return [*lines, *([f"Note: {row.note}"] if row.note else [])]


def pins_blocks(side_by_side: SideBySide) -> list[Block]:
    """Arms side by side: who they are, what else differs, and the table."""
    heads: list[Line] = [
        f"{head.label}: {head.title}, arm {head.arm} of run {head.run[:8]} ({_when(head.created)}): {head.choices}"
        for head in side_by_side.arms
    ]
    if side_by_side.missing:
        heads.append(f"Not kept here: {', '.join(side_by_side.missing)}.")
    blocks: list[Block] = [heads, side_by_side.remarks]
    columns = [Column(), *(Column(head.label, prose=True) for head in side_by_side.arms), Column()]
    for group in ("conditions", "choices", "figures", "ledger"):
        rows = [
            [
                row.label,
                *(f"{cell.text} ({cell.against})" if cell.against else cell.text for cell in row.cells),
                "differs" if row.differs and group == "conditions" else "",
            ]
            for row in side_by_side.rows
            if row.group == group
        ]
        blocks.append([Table(columns, rows)] if rows else [])
    for row in side_by_side.rows:
        if row.group == "text":
            for head, cell in zip(side_by_side.arms, row.cells, strict=True):
                blocks.append([f"Text of {head.label}: {cell.text or '(none)'}"])
    return blocks


def _when(created: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(created))


def _ended(row: Row) -> str:
    return "stopped" if row.status == "cancelled" else row.status


def _remark(row: Row) -> str:
    status = "" if row.status == "done" else f"{_ended(row)}. "
    report = f" (tokendyno report {row.trial} --html FILE)" if row.trials and row.line else ""
    verdict = f"{status}{row.line or ''}{report}".strip()
    return without_controls(": ".join(filter(None, [row.name, verdict])))


def add_commands(add: Add) -> None:
    sub = add("history", history, "the runs that are kept: find, show, name, pin and delete them", json=True)
    sub.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=ACTIONS,
        metavar="ACTION",
        help="list (default), show ID, pins RUN.ARM RUN.ARM ... (two to five arms side by side), name ID TEXT, note ID "
        "TEXT, delete ID ..., undelete ID ... (within an hour)",
    )
    sub.add_argument(
        "what",
        nargs="*",
        metavar="ID",
        help=f"the beginning of a run's id, {MIN_ID} characters or more, and what the action takes",
    )
    sub.add_argument(
        "--words",
        default="",
        metavar="TEXT",
        help="words of its model, machine, choices, prompt, verdict, name or note; all of them",
    )
    sub.add_argument("--model", default="", metavar="NAME", help="part of the model's name")
    sub.add_argument(
        "--axis", default="", metavar="AXIS", help="an axis that an arm set; axis=choice: set or by default"
    )
    sub.add_argument("--machine", default="", metavar="NAME", help="part of the machine's name, such as H200")
    sub.add_argument("--since", default="", metavar="DATE", help="no older than 2026-11-30, or 24h, 7d, 4w, 6m")
    sub.add_argument("--until", default="", metavar="DATE", help="no younger, likewise")
    add_number(sub, "--limit", 20, "rows of a page", 1, MAX_ROWS)
    add_number(sub, "--page", 1, "which page", 1, MAX_PAGE)
    sub.add_argument("--all", action="store_true", help="list: all rows; show: every figure")
    add_history(sub)
