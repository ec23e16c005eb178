"""A history that a newer version of tokendyno wrote: it is told from the file's first bytes, and left as it is.

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

MAGIC, FORMAT_AT = b"SQLite format 3\x00", 60
"""https://www.sqlite.org/fileformat2.html#the_database_header: the user version, four bytes, big endian."""

VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,39}")


def refuse_newer(path: Path) -> None:
    """Newer if a newer version wrote the file, as far as it can be told without its log."""
    with suppress(OSError), path.open("rb") as file:
        head = file.read(FORMAT_AT + 4)
        number = int.from_bytes(head[FORMAT_AT:], "big")
        if head.startswith(MAGIC) and is_newer(number):
            _look(path, number)


def refuse_newer_now(db: sqlite3.Connection) -> None:
    """Newer if a newer version has brought an open file to its own format."""
    (number,) = db.execute("PRAGMA user_version").fetchone()
    if is_newer(number):
        raise Newer(number)


def _look(path: Path, number: int) -> None:
    """Newer unless the file is another program's, or damaged."""
    version = ""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)) as db:
            if not is_ours(db):
                return
            with suppress(sqlite3.Error, *BROKEN_RECORD):
                version = _version(db)
    except sqlite3.Error:
        return
    raise Newer(number, version)


class _First(msgspec.Struct):
    """What the first record of a run says of the versions that made it."""

    versions: Mapping[str, str] = {}


def _version(db: sqlite3.Connection) -> str:
    """The version of tokendyno that made the newest run; "" where that is not known, or is this one."""
    newest = "SELECT body FROM runs JOIN records ON run_id = id AND seq = 0 ORDER BY created DESC LIMIT 1"
    (body,) = db.execute(newest).fetchone() or ("{}",)
    found = msgspec.json.decode(body, type=_First).versions.get("tokendyno", "")
    return found if VERSION.fullmatch(found) and found != versions().get("tokendyno") else ""
