"""Files named on the command line: read up to a limit, written completely or not at all."""

import argparse
import errno
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tokendyno.backend.cli.terminal import Block, show
from tokendyno.backend.config import MAX_PROMPT_BYTES
from tokendyno.backend.errors import InputError
from tokendyno.backend.files.whole import require_writable, write_whole


def typed_path(name: str) -> Path:
    """The path that an option names. The shell leaves ~ as it is in `--history=~/x`."""
    return Path(os.path.expanduser(name))


def read_prompt(path: Path, option: str = "--prompt-file") -> str:
    """The text of a file that `option` named, of "-" that of standard input. Reads no more than a prompt may have: it
    may be an endless device."""
    try:
        with open(0 if str(path) == "-" else path, "rb", closefd=str(path) != "-") as file:
            data = file.read(MAX_PROMPT_BYTES + 1)
    except OSError as error:
        raise InputError(
            f"The file {path} cannot be read ({error.strerror}). Name another text file with {option}."
        ) from error
    if len(data) > MAX_PROMPT_BYTES:
        raise InputError(f"The file {path} of {option} has more than {MAX_PROMPT_BYTES:,} bytes. Shorten it.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"The file {path} of {option} is not UTF-8 text: byte {error.start + 1:,} is 0x{data[error.start]:02x}. "
            "Save it as UTF-8."
        ) from error


def check_folder(folder: Path | None) -> None:
    """InputError where --models-dir names no folder."""
    if folder is not None and not folder.is_dir():
        raise InputError(f"There is no models folder {folder}. Name another with --models-dir, or leave it out.")


def check_writable(target: str | None, option: str = "--json") -> None:
    """InputError before a long run, not after it, if its result cannot be written. Leaves nothing behind."""
    if target is None or target == "-":
        return
    try:
        if not _in_place(target):
            require_writable(Path(target))
    except OSError as error:
        raise _unwritable(target, option, error) from error


def check_distinct(targets: Mapping[str, str | Path | None]) -> None:
    """InputError where two options name the same file, of which the second would replace the first. `targets`: by
    option, None where it was left out."""
    options: dict[str | Path, str] = {}
    for option, target in targets.items():
        if not target or (target != "-" and Path(target).exists() and not Path(target).is_file()):
            continue  # none, or a pipe or device
        file = "-" if target == "-" else Path(target).resolve()
        if file in options:
            raise InputError(f"{options[file]} and {option} name the same file. Name another for one of them.")
        options[file] = option


def write_json(target: str | None, result: msgspec.Struct | dict[str, Any]) -> None:
    """Write one JSON document as `write_text` does; None: nowhere. ValueError for NaN and infinities."""
    if target is not None:
        text = json.dumps(msgspec.to_builtins(result), indent=1, allow_nan=False)
        write_text(target, text + "\n", "--json")


def give(options: argparse.Namespace, blocks: Sequence[Block], document: msgspec.Struct | dict[str, Any]) -> None:
    """Print blocks, unless the document goes to standard output (`--json -`), and write the document: also where nobody
    takes what is printed, as in `tokendyno run --json FILE | head`."""
    try:
        if options.json != "-":
            show(blocks, options.color)
    finally:
        write_json(options.json, document)


def write_text(target: str, text: str, option: str) -> None:
    """Write to standard output ("-"), or to a file that is replaced in one step. `option`: what named the file."""
    if target == "-":
        print(text, end="")
        return
    try:
        if _in_place(target):
            with open(target, "w", encoding="utf-8") as device:
                device.write(text)
            return
        write_whole(Path(target), text.encode())
    except OSError as error:
        raise _unwritable(target, option, error) from error


def _in_place(target: str) -> bool:
    """Whether a target is a pipe or device, which must not be replaced by a file. OSError where it cannot be a file."""
    path = Path(target)
    if not target:
        raise FileNotFoundError(errno.ENOENT, "the name is empty")
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return path.exists() and not path.is_file()


def _unwritable(target: str, option: str, error: OSError) -> InputError:
    return InputError(f"The file {target!r} cannot be written ({error.strerror}). Name another with {option}.")
