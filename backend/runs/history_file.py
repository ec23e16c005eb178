"""The history file: created, migrated, checked, and set aside if it cannot be read.

It survives crashes (WAL, transactions); only its owner may read it, for it holds prompts.
"""

import errno
import os
import sqlite3
import stat
import time
from contextlib import closing, suppress
from pathlib import Path

import psutil

from backend.errors import InputError
from backend.runs import history_schema
from backend.runs.history_schema import Foreign, check_schema
from backend.runs.newer import refuse_newer, untouched
from backend.runs.records import BROKEN_RECORD, Ended, decode_record, encode_record
from backend.runs.trouble import passes

WAIT_S = 2.0
"""How long to wait for a lock that another process holds, where nobody looks on."""

READ_WAIT_S = 0.25
"""The same for a reader: the page waits for it."""

CHECKED_AT_ONCE_BYTES = 64 << 20
"""A larger file is checked page by page after the start: that takes about a second for each GiB."""

PRIVATE = 0o600
COMPANIONS = ("", "-wal", "-shm", "-journal")


def connect(path: Path, wait_s: float | None = None) -> sqlite3.Connection:
    """A connection to an existing file that any thread may use, one at a time. Newer if a newer version wrote it."""
    refuse_newer(path)
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", timeout=WAIT_S if wait_s is None else wait_s, isolation_level=None,
        check_same_thread=False, uri=True,
    )  # fmt: skip
    db.text_factory = lambda text: text.decode("utf-8", "replace")  # damage is no reason to raise
    try:
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA journal_size_limit = 16777216")
    except BaseException:  # of what is no database
        db.close()
        raise
    return db


def check_path(path: Path) -> None:
    """InputError if a history cannot be kept at this path, whatever is there now, or whoever waits."""
    try:
        _touch(path)
    except OSError as error:
        if not passes(error):
            raise _unwritable(path, error.strerror or str(error)) from error


def open_file(path: Path) -> str:
    """Make the file ready: private, migrated to this version, with the runs of dead processes marked as interrupted.

    Returns a message for the user if the old file could not be read, "" otherwise; it is then kept under another name
    and a new one is begun. InputError if the path cannot be written; sqlite3.Error or OSError if waiting may help.
    """
    check_path(path)
    refuse_newer(path)
    _make_private(path)
    why = ""
    try:
        _prepare(path)
    except Foreign:
        raise _unwritable(path, "it is the database of another program") from None
    except (sqlite3.Error, *BROKEN_RECORD) as error:
        if passes(error):
            raise
        why = str(error)
    if not why:
        return ""
    aside = set_aside(path)
    _touch(path)
    _prepare(path)
    return aside_message(path, why, aside)


def aside_message(path: Path, why: str, aside: Path) -> str:
    """What was done with a file that could not be read."""
    return (
        f"The history file {path.name} could not be read ({why}). It was kept as {aside.name}, and a new one was "
        "begun. If you have a backup, put it in its place."
    )


def identity(path: Path) -> tuple[int, int] | None:
    """Which file is at this path; None if there is none."""
    with suppress(OSError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None


def damage_of(path: Path) -> str:
    """What is wrong with the file's content; "" if nothing is, or if it cannot be told now."""
    try:
        with closing(connect(path)) as db:
            check_schema(db)
            _check_pages(db)
    except (Foreign, sqlite3.Error, UnicodeError) as error:
        return "" if passes(error) else str(error) or "it is the database of another program"
    return ""


def set_aside(path: Path) -> Path:
    """Rename a history with its WAL files; returns the new name."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    aside = path.with_name(f"{path.name}.unreadable-{stamp}")
    n = 1
    while aside.exists():
        n += 1
        aside = path.with_name(f"{path.name}.unreadable-{stamp}-{n}")
    os.replace(path, aside)
    for suffix in COMPANIONS[1:]:
        with suppress(FileNotFoundError):
            os.replace(path.with_name(path.name + suffix), aside.with_name(aside.name + suffix))
    return aside


def readable_asides(path: Path) -> list[str]:
    """A sentence for each file that was set aside beside a history and that this version can read: an older version
    took the format of a newer one for damage. Nothing is written to them."""
    said = []
    for aside in sorted(path.parent.glob(f"{path.name}.unreadable-*")):
        with suppress(Foreign, sqlite3.Error, UnicodeError), closing(untouched(aside)) as db:
            check_schema(db)
            if aside.stat().st_size <= CHECKED_AT_ONCE_BYTES:
                _check_pages(db)
            (runs,) = db.execute("SELECT count(*) FROM runs").fetchone()
            if runs:
                said.append(
                    f"{aside.name} holds {runs:,} run{'' if runs == 1 else 's'}: an older version of tokendyno could "
                    f"not read it, and this one can. Open it with --history, or, to go on with it, end tokendyno and "
                    f"let it and {path.name} swap names."
                )
    return said


# --- opening --------------------------------------------------------------------------------------


def _touch(path: Path) -> None:
    """Create the file, for its owner alone, if it does not exist. OSError if it cannot be written."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):  # a pipe would be waited for
            raise OSError(errno.EINVAL, "it is not a regular file")
        if not os.access(path, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    with suppress(FileExistsError):  # what is there is never opened here: closing it would release SQLite's locks on it
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE))
    for suffix in COMPANIONS[1:]:
        companion = path.with_name(path.name + suffix)
        if companion.is_dir():
            raise OSError(errno.EINVAL, f"{companion.name} is a folder")


def _make_private(path: Path) -> None:
    """Mend the mode of a history that others can read: of this file, its companions, backups and predecessors."""
    kin = [path.with_name(path.name + suffix) for suffix in COMPANIONS]
    kin += [*path.parent.glob(f"{path.name}.unreadable-*"), *path.parent.glob(f"{path.name}.backup-v*")]
    for one in kin:
        with suppress(OSError):
            if one.stat().st_mode & 0o077:
                one.chmod(PRIVATE)


def _prepare(path: Path) -> None:
    with closing(connect(path)) as db:
        if not path.stat().st_size:
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        check_schema(db)
        if path.stat().st_size <= CHECKED_AT_ONCE_BYTES:
            _check_pages(db)
        _use_wal(db)
        version = check_schema(db)
        steps = history_schema.MIGRATIONS
        if 0 < version < len(steps):
            backup_path = Path(f"{path}.backup-v{version}")
            os.close(os.open(backup_path, os.O_RDWR | os.O_CREAT, PRIVATE))
            with closing(sqlite3.connect(backup_path)) as backup:
                db.backup(backup)
        for number in range(version, len(steps)):
            db.execute("BEGIN IMMEDIATE")
            (now,) = db.execute("PRAGMA user_version").fetchone()  # another process may have taken this step
            if now == number:
                steps[number](db)
                db.execute(f"PRAGMA user_version = {number + 1}")
            db.execute("COMMIT")
        check_schema(db)
        _mark_interrupted(db)
    _make_private(path)


def _check_pages(db: sqlite3.Connection) -> None:
    (state,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if state != "ok":
        raise sqlite3.DatabaseError(f"quick_check: {state}")


def _mark_interrupted(db: sqlite3.Connection) -> None:
    """Append a last record to every run whose process is gone."""
    db.execute("BEGIN IMMEDIATE")  # before reading: another process may be marking the same runs
    open_runs = db.execute("SELECT id, pid, pid_started FROM runs WHERE status = 'running'").fetchall()
    for run_id, pid, pid_started in open_runs:
        if _alive(pid, pid_started):
            continue
        last = db.execute(
            "SELECT seq, body FROM records WHERE run_id = ? ORDER BY seq DESC LIMIT 1", (run_id,)
        ).fetchone()
        with suppress(*BROKEN_RECORD, OverflowError, sqlite3.IntegrityError):
            # a record that cannot be read, or its number: whoever reads the run is told that it is cut there
            seq, body = last
            at_s = getattr(decode_record(body), "at_s", 0.0)
            ended = Ended(at_s, "interrupted", "The app stopped during this run. What was measured until then is kept; "
                          "press Run to measure again.")  # fmt: skip
            db.execute("INSERT INTO records VALUES (?, ?, ?)", (run_id, seq + 1, encode_record(ended)))
        db.execute("UPDATE runs SET status = 'interrupted' WHERE id = ?", (run_id,))
    db.execute("COMMIT")


def _use_wal(db: sqlite3.Connection) -> None:
    """Switch to a write-ahead log. SQLite needs the file to itself for that and does not wait on its own."""
    deadline_s = time.monotonic() + WAIT_S
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                raise
            time.sleep(0.02)


def _alive(pid: int, started: float) -> bool:
    """Whether the process that had this pid at `started` (seconds since the epoch) still exists."""
    try:
        return bool(abs(psutil.Process(pid).create_time() - started) < 2)
    except (psutil.Error, TypeError, ValueError, OverflowError):
        return False


def _unwritable(path: Path, why: str) -> InputError:
    return InputError(
        f"The history file {path} cannot be written ({why}). Name another with --history, or make its folder writable."
    )
