"""What is said while a history cannot be written."""

import errno
import sqlite3

import pytest

from backend.runs.history_schema import Newer
from backend.runs.trouble import cause, code_of, lost_sentence, passes, sentence


def failed(code: str, text: str = "text") -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = getattr(sqlite3, f"SQLITE_{code}")
    return error


PASSING = ("BUSY", "LOCKED", "READONLY", "IOERR", "FULL", "CANTOPEN", "NOMEM", "INTERRUPT", "PROTOCOL")


@pytest.mark.parametrize("code", PASSING)
def test_what_passes_says_nothing_about_the_file(code: str) -> None:
    assert passes(failed(code))


@pytest.mark.parametrize("code", ["CORRUPT", "NOTADB", "ERROR", "CONSTRAINT"])
def test_what_does_not_pass_is_of_the_file(code: str) -> None:
    assert not passes(failed(code))


def test_a_code_is_the_primary_one_and_other_errors_have_none() -> None:
    error = failed("BUSY")
    error.sqlite_errorcode = 266  # SQLITE_IOERR_READ
    assert code_of(error) == sqlite3.SQLITE_IOERR and code_of(ValueError("x")) == code_of(OSError(5, "x")) == 0


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (failed("BUSY"), ("another program has locked it", "End that program")),
        (failed("LOCKED"), ("another program has locked it", "End that program")),
        (failed("READONLY"), ("it may not be written", "Make the file")),
        (failed("CANTOPEN"), ("it cannot be opened", "Check that its folder")),
        (failed("IOERR"), ("its disk reports an error", "Check that the disk")),
        (failed("FULL"), ("its disk is full", "Free some space")),
        (OSError(errno.EFBIG, "x"), ("its disk is full", "Free some space")),
        (OSError(errno.EMFILE, "x"), ("too many open files", "Mend that.")),
        (OSError("odd"), ("success", "Mend that.")),
        (Newer(9), ("a newer version of tokendyno wrote it", "Update tokendyno")),
        (failed("CORRUPT", "malformed"), ("malformed", "Move the file away")),
    ],
)
def test_a_cause_and_what_to_do(error: Exception, said: tuple[str, str]) -> None:
    assert tuple(text.startswith(begin) for text, begin in zip(cause(error), said, strict=True)) == (True, True)


@pytest.mark.parametrize(
    ("state", "waiting"),
    [
        ((0, 0, 0), ""),
        ((1, 1, 1 << 19), " 1 records of 1 run wait in memory (0.5 of at most 64 MiB) and are written once that "
         "is over."),
        ((2_000, 2, 3 << 20), " 2,000 records of 2 runs wait in memory (3.0 of at most 64 MiB) and are written once "
         "that is over."),
    ],
)  # fmt: skip
def test_what_waits_is_told_where_something_does(state: tuple[int, int, int], waiting: str) -> None:
    assert sentence("h.sqlite", failed("FULL"), state, 64 << 20) == (
        f"Runs are not being kept: the history h.sqlite cannot be written, its disk is full.{waiting} Free some space "
        "there."
    )


@pytest.mark.parametrize(("runs", "said"), [(1, "1 run could"), (2, "2 runs could"), (1_000, "1,000 runs could")])
def test_what_is_lost_is_counted(runs: int, said: str) -> None:
    assert lost_sentence(runs, "why") == f"{said} not be kept in the history, or only in part: why."
