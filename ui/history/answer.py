"""What the History page asks the server, and the answers. Nothing of a question is trusted."""

import logging
from typing import Annotated, Literal

import msgspec

from tokendyno.backend.ablation.courses import titled
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.history.pins import read_pins
from tokendyno.backend.history.rows import Row, RunList
from tokendyno.backend.history.search import read_search, read_zone
from tokendyno.backend.hosting.visitor import Visitor
from tokendyno.backend.redact import redact
from tokendyno.backend.runs.row import arm_titles
from tokendyno.ui.errors import UNEXPECTED, log_unexpected, refusal

log = logging.getLogger("tokendyno.page")

MAX_FIELDS = 8
UNREADABLE = "This question cannot be read. Reload the page."

Id = Annotated[str, msgspec.Meta(max_length=64)]
Text = Annotated[str, msgspec.Meta(max_length=4_000)]


class _Question(msgspec.Struct, tag_field="ask", forbid_unknown_fields=True):
    pass


class Find(_Question, tag="find"):
    """Runs. `fields`: as `read_search` takes them; `page`: from 1, as it stands in the address; `zone`: minutes
    that the browser is ahead of UTC."""

    fields: Annotated[dict[str, Text], msgspec.Meta(max_length=MAX_FIELDS)]
    page: Annotated[str, msgspec.Meta(max_length=32)] = "1"
    zone: float = 0.0


class Beside(_Question, tag="beside"):
    """Pinned arms side by side."""

    pins: Text


class Change(_Question, tag="change"):
    """Change one run. `text`: the name or the note."""

    what: Literal["name", "note", "share", "unshare", "delete", "undelete"]
    run: Id
    text: Text = ""


class Runs(msgspec.Struct):
    """The answer to `Find`. `kept`: whether runs outlive the app; `team`: whether they can be shared; `imports`:
    whether they can be taken in from files; `trouble`: what is not being kept at this moment; `notes`: what happened
    to the file since the start."""

    found: RunList
    kept: bool
    team: bool
    imports: bool
    trouble: str
    notes: str


class Changed(msgspec.Struct):
    """The answer to `Change`: the run as it is now; None while it is deleted."""

    row: Row | None


def answer(bench: Bench, question: object, visitor: Visitor) -> str:
    """The JSON text that answers one question of a visitor."""
    try:
        parsed = msgspec.convert(question, Find | Beside | Change, strict=True)
        return msgspec.json.encode(_answer(bench, parsed, visitor)).decode()
    except (msgspec.ValidationError, RecursionError):
        return refusal(UNREADABLE)
    except InputError as error:
        return refusal(redact(str(error)))
    except Exception:
        log_unexpected(log, "a question of the History page failed")
        return refusal(UNEXPECTED)


def _answer(bench: Bench, question: Find | Beside | Change, visitor: Visitor) -> msgspec.Struct:
    history = bench.history
    match question:
        case Find(fields=fields, page=page, zone=zone):
            search = read_search(fields, _page(page), zone_s=read_zone(zone))
            runs = history.listing.find(search, visitor)
            rows = [_titled(titled(bench.store.path, row, bench.runs)) for row in runs.rows]
            runs = msgspec.structs.replace(runs, rows=rows)
            notes = " ".join(bench.store.messages)
            return Runs(runs, history.kept, history.team, bench.limits.imports, bench.store.trouble, notes)
        case Beside(pins=pins):
            return history.beside(read_pins(pins), titles=True)
        case Change():
            _change(bench, question, visitor)
            row = history.listing.one(question.run, visitor)
            return Changed(_titled(row) if row is not None else None)


def _titled(row: Row) -> Row:
    """A run whose arms are named as on the other pages."""
    arms = [msgspec.structs.replace(arm, text=arm_titles(arm.text)) for arm in row.arms]
    return msgspec.structs.replace(row, arms=arms)


def _change(bench: Bench, change: Change, visitor: Visitor) -> None:
    changes = bench.history.changes
    match change.what:
        case "name":
            changes.rename(change.run, change.text, visitor)
        case "note":
            changes.note(change.run, change.text, visitor)
        case "share" | "unshare":
            changes.share(change.run, change.what == "share", visitor)
        case "delete":
            changes.delete([change.run], visitor)
        case "undelete":
            changes.undelete([change.run], visitor)


def _page(text: str) -> int:
    """The index of a page that an address names from 1."""
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1 << 40):
        raise InputError(f"There is no page {text[:20]!r}. Go back to the first one.")
    return int(text) - 1
