"""What keeps the history from being written or read, as a sentence: what is not kept or shown, and what to do."""

import errno
import os
import sqlite3

from backend.runs.history_schema import Newer

PASSING = (
    sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_PROTOCOL,
)  # fmt: skip
"""Errors that say nothing about the content of the file: it stays where it is, and is tried again."""

PASSING_ERRNO = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
    errno.EFBIG,
    errno.EAGAIN,
)
"""Of the system's own errors, those that another path would not mend."""

WORDS = {
    sqlite3.SQLITE_FULL: ("its disk is full", "Free some space there."),
    sqlite3.SQLITE_BUSY: ("another program has locked it", "End that program, or wait for it."),
    sqlite3.SQLITE_LOCKED: ("another program has locked it", "End that program, or wait for it."),
    sqlite3.SQLITE_READONLY: ("it may not be written", "Make the file and its folder writable."),
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", "Check that its folder exists and is writable."),
    sqlite3.SQLITE_IOERR: ("its disk reports an error", "Check that the disk works and has space."),
}


def passes(error: Exception) -> bool:
    """Whether waiting may help, since the file itself is not to blame."""
    if isinstance(error, OSError):
        return error.errno in PASSING_ERRNO
    return isinstance(error, Newer) or code_of(error) in PASSING


def code_of(error: Exception) -> int:
    """SQLite's primary error code; 0 for any other error."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def cause(error: Exception) -> tuple[str, str]:
    """Why the history is not written or read, and what to do about it."""
    if isinstance(error, OSError):
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        return WORDS[sqlite3.SQLITE_FULL] if full else (os.strerror(error.errno or 0).lower(), "Mend that.")
    if isinstance(error, Newer):
        return str(error), "Update tokendyno, or name another file with --history (TOKENDYNO_HISTORY)."
    return WORDS.get(code_of(error), (str(error), "Move the file away, and a new one is begun."))


def sentence(name: str, error: Exception, state: tuple[int, int, int], most_bytes: int) -> str:
    """What is not being kept now. `state`: records, runs and bytes that wait in memory."""
    records, runs, size = state
    why, cure = cause(error)
    waiting = (
        f" {records:,} records of {_many(runs, 'run')} wait in memory ({size / (1 << 20):.1f} of at most "
        f"{most_bytes >> 20} MiB) and are written once that is over."
        if records
        else ""
    )
    return f"Runs are not being kept: the history {name} cannot be written, {why}.{waiting} {cure}"


def unread_sentence(name: str, error: Exception) -> str:
    """What cannot be shown now. What may be damage is looked into by the writer at once."""
    why, cure = cause(error)
    if not passes(error):
        cure = "It is being checked, and set aside if it is damaged. Try again; if this stays, move the file away."
    return f"The history {name} cannot be read: {why}. {cure}"


def lost_sentence(runs: int, why: str) -> str:
    """What is gone for good."""
    return f"{_many(runs, 'run')} could not be kept in the history, or only in part: {why}."


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
