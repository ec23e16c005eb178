"""Reads and writes recordings: whole or not at all, whatever ends the process in between."""

from collections.abc import Sequence
from pathlib import Path

from tokendyno.backend.errors import InputError, shown
from tokendyno.backend.files.whole import write_whole
from tokendyno.backend.recordings.format import MAX_FILE_BYTES, pack, unpack
from tokendyno.backend.runs.records import Record

ENDING = ".dyno"


def read_recording(path: Path, shipped: bool = False) -> list[Record]:
    """The records of a file. InputError names the file, and says what is wrong with it. `shipped`: as for `unpack`."""
    try:
        if not path.is_file():
            raise InputError("it is not a regular file. Give a recording.")
        with open(path, "rb") as file:
            return unpack(file.read(MAX_FILE_BYTES + 1), shipped)
    except OSError as error:
        raise InputError(f"{shown(path)} cannot be read ({error.strerror}). Name another file.") from error
    except InputError as error:
        raise InputError(f"{shown(path)}: {error}") from error


def write_recording(path: Path, records: Sequence[Record]) -> int:
    """Write a run to a file, which is replaced in one step; returns its bytes. InputError if it cannot be written."""
    data = pack(records)
    try:
        if path.exists() and not path.is_file():
            raise InputError(f"{shown(path)} is no ordinary file. Name another.")
        write_whole(path, data)
    except OSError as error:
        raise InputError(f"{shown(path)} cannot be written ({error.strerror}). Name another file.") from error
    return len(data)
