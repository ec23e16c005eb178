"""Entry of the command line: parses, runs one command, and turns every error into one sentence and an exit code.

The commands are imported only once Ctrl-C is handled, since importing them takes half a second.
"""

import errno
import io
import os
import sys
from collections.abc import Sequence

from tokendyno.backend.redact import redact

OK, BAD_INPUT, FAILED, STOPPED = 0, 2, 3, 130
"""Exit codes: also of a failed run, and of one that was stopped with Ctrl-C."""

UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of a standard output that takes no more: its disk is full, or its terminal has gone."""


class CommandFailed(Exception):
    """A command could not do what was asked: one sentence, and the exit code."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of the console script. Returns the exit code."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # generated text must not break an ASCII terminal
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return _fail("stopped.", STOPPED)
    except BrokenPipeError:
        _discard(1)
        return OK
    except OSError as error:
        if error.errno not in UNWRITABLE or error.filename is not None:
            raise
        _discard(1)
        why = f"The output cannot be written ({error.strerror}). Free some space there, or send it elsewhere."
        return _fail(why, BAD_INPUT)


def _run(arguments: Sequence[str] | None) -> int:
    from tokendyno.backend.cli.files import check_writable
    from tokendyno.backend.cli.parser import make_parser
    from tokendyno.backend.cli.progress import counts_shown
    from tokendyno.backend.errors import InputError

    try:
        words = sys.argv[1:] if arguments is None else list(arguments)
        options = make_parser(words[0] if words else "").parse_args(words)
        check_writable(getattr(options, "json", None))  # before a long run, not after it
        with counts_shown():
            code = int(options.act(options))
        sys.stdout.flush()  # raises here, where it is caught, if nobody takes the output
        return code
    except SystemExit:  # of --help and --version
        sys.stdout.flush()
        raise
    except InputError as error:
        return _fail(str(error), BAD_INPUT)
    except CommandFailed as error:
        return _fail(str(error), error.code)


def _fail(sentence: str, code: int) -> int:
    try:
        print(f"tokendyno: {redact(sentence)}", file=sys.stderr)
    except OSError:
        _discard(2)
    return code


def _open_closed_streams() -> None:
    """Let closed standard streams lead nowhere: else files that are opened later would take their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)  # the lowest that is free: that of the stream
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode))


def _discard(number: int) -> None:
    """Let a standard stream lead nowhere, so that flushing it at the end raises nothing."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)
