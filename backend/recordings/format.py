"""A run as one file: a line of text that says what it is, and the records as MessagePack, packed with xz.

The records are the ones that the history holds, with nothing rounded. Columns are not delta-coded: 2 arms of 256 tokens
take 12 KB as they are, since xz finds the repetitions. A file comes from anywhere, so it is read within bounds.
"""

import lzma
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tokendyno.backend.errors import InputError, shown
from tokendyno.backend.files.whole import write_whole
from tokendyno.backend.hosting.limits import RECORDING_BYTES
from tokendyno.backend.runs.quality import whole_reading
from tokendyno.backend.runs.records import Created, Ended, Record
from tokendyno.backend.runs.run import folded

ENDING = ".dyno"
VERSION = 1
"""Raised when older versions of tokendyno could no longer read what is written."""

NAME = b"tokendyno recording "
MAX_UNPACKED_BYTES = MAX_FILE_BYTES = RECORDING_BYTES

MAX_DICTIONARY_BYTES = 24 << 20
"""What unpacking itself may take: files are written with a dictionary of 8 MiB."""

LATEST_S = 253_402_300_800.0
"""The year 10000, in seconds since the epoch: no calendar shows a later date."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Record]).decode


def pack(records: Sequence[Record]) -> bytes:
    """The bytes of a recording, without its owner. InputError if the run has not ended or is too large."""
    first, *rest = records
    assert isinstance(first, Created)
    if not rest or not isinstance(rest[-1], Ended):
        raise InputError("This run has not ended. Wait for its end, or stop it.")
    body = _encode([msgspec.structs.replace(first, owner="", origin="here"), *rest])
    packed = NAME + b"%d\n" % VERSION + lzma.compress(body, preset=6)
    if len(body) > MAX_UNPACKED_BYTES or len(packed) > MAX_FILE_BYTES:
        raise InputError(
            f"This run has {len(body):,} bytes of records, over the limit of {MAX_UNPACKED_BYTES:,} for a file. Record "
            "fewer tokens or repeats."
        )
    return packed


def unpack(data: bytes, shipped: bool = False) -> list[Record]:
    """The records of a recording that has ended. InputError says what is wrong. `shipped`: no stranger's file."""
    records = _records(_body(data))
    if not records or not isinstance(records[0], Created) or not isinstance(records[-1], Ended):
        raise _damaged("it does not hold a whole run")
    if not shipped:
        _require_shown(records)
    return records


def first_record(data: bytes) -> Created:
    """The first record of a recording whose others need not be read. InputError as from `unpack`."""
    try:
        first, *_ = msgspec.msgpack.decode(_body(data), type=list[msgspec.Raw])
        return msgspec.msgpack.decode(first, type=Created)
    except (msgspec.MsgspecError, ValueError) as error:
        raise _damaged("its first record cannot be read") from error


def _body(data: bytes) -> bytes:
    """The unpacked records."""
    if len(data) > MAX_FILE_BYTES:
        raise InputError(f"This file has over {MAX_FILE_BYTES:,} bytes, more than any recording. Choose another file.")
    line, _, packed = data.partition(b"\n")
    number = line.removeprefix(NAME)
    if number == line or len(number) > 9 or not number.isdigit():
        raise InputError(
            "This file is not a recording of tokendyno. File, in History's column Save as, writes one, and so does "
            "`tokendyno export --run ID -o FILE`."
        )
    if int(number) > VERSION:
        raise InputError("This recording was written by a newer version of tokendyno. Update tokendyno to read it.")
    try:
        unpacker = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_DICTIONARY_BYTES)
        body = unpacker.decompress(packed, max_length=MAX_UNPACKED_BYTES + 1)
    except (lzma.LZMAError, EOFError) as error:
        raise _damaged("its packed part cannot be read") from error
    if len(body) > MAX_UNPACKED_BYTES:
        raise InputError(
            f"This recording unpacks to more than {MAX_UNPACKED_BYTES:,} bytes, which no recording does. "
            "Choose another file."
        )
    if not unpacker.eof:
        raise _damaged("its end is missing")
    if unpacker.unused_data:
        raise _damaged("something follows its end")
    return body


def _records(body: bytes) -> list[Record]:
    try:
        return _decode(body)
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError, OverflowError) as error:
        raise _damaged("it holds a record that this version does not know") from error


def _require_shown(records: Sequence[Record]) -> None:
    """InputError if these records do not make a run whose figures can be computed, so that it can be shown."""
    try:
        run = folded(records).snapshot()
        if not 0 <= run.created.created < LATEST_S or list(run.arms) != [arm.name for arm in run.request.arms]:
            raise ValueError("no date, or arms are missing")
        for figures in ("summaries", "ledgers", "comparison"):
            getattr(run, figures)  # each is computed when it is asked for
        if run.request.traffic is not None:
            run.same_tokens()
        whole_reading(run)
    except Exception as error:  # a file may hold anything
        raise _damaged("its records do not follow one another") from error


def _damaged(why: str) -> InputError:
    return InputError(f"This recording is damaged: {why}. Export or fetch it again.")


# --- files ----------------------------------------------------------------------------------------


def read_recording(path: Path, shipped: bool = False) -> list[Record]:
    """The records of a file. InputError names the file, and says what is wrong with it. `shipped`: as for `unpack`."""
    try:
        if path.exists() and not path.is_file():
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
