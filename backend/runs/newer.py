"""A history that a newer version of tokendyno wrote: it is told from the file itself, and left as it is.

SQLite is not asked to open such a file for writing: even a reader may move what lies in its log.
"""

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from backend.hardware import versions
from backend.runs.history_schema import Newer, is_newer, is_ours
from backend.runs.records import BROKEN_RECORD

VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,39}")


def refuse_newer(path: Path) -> None:
    """Newer if a newer version wrote the file, as far as it can be told without its log.

    SQLite itself reads it: whoever opens the file without SQLite and closes it again, releases all locks that this
    process has on it (https://www.sqlite.org/howtocorrupt.html, 2.2), and another process then removes its log.
    """
    try:
        with closing(untouched(path)) as db:
            (number,) = db.execute("PRAGMA user_version").fetchone()
            if not is_newer(number) or not is_ours(db):
                return
            version = _version(db)
    except sqlite3.Error:  # none there, or no database; who opens it for writing says so
        return
    raise Newer(number, version)


def refuse_newer_now(db: sqlite3.Connection) -> None:
    """Newer if a newer version has brought an open file to its own format."""
    (number,) = db.execute("PRAGMA user_version").fetchone()
    if is_newer(number):
        raise Newer(number)


def untouched(path: Path) -> sqlite3.Connection:
    """A connection that writes nothing beside the file either, and does not see its log."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)


class _First(msgspec.Struct):
    """What the first record of a run says of the versions that made it."""

    versions: Mapping[str, str] = {}


def _version(db: sqlite3.Connection) -> str:
    """The version of tokendyno that made the newest run; "" where that is not known, or is this one."""
    newest = "SELECT body FROM runs JOIN records ON run_id = id AND seq = 0 ORDER BY created DESC LIMIT 1"
    with suppress(sqlite3.Error, *BROKEN_RECORD):
        (body,) = db.execute(newest).fetchone() or ("{}",)
        found = msgspec.json.decode(body, type=_First).versions.get("tokendyno", "")
        return found if VERSION.fullmatch(found) and found != versions().get("tokendyno") else ""
    return ""
