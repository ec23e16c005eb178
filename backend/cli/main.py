"""Entry of the command line: parses, runs one command, and turns every error into one sentence and an exit code.

The commands are imported only once Ctrl-C is handled, since importing them takes half a second.
"""

import io
import os
import sys
from collections.abc import Sequence

from tokendyno.backend.redact import redact

OK, BAD_INPUT, FAILED, STOPPED = 0, 2, 3, 130
"""Exit codes: also of a failed run, and of one that was stopped with Ctrl-C."""


class CommandFailed(Exception):
    """A command could not do what was asked: one sentence, and the exit code."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of the console script. Returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # generated text must not break an ASCII terminal
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return _fail("stopped.", STOPPED)
    except BrokenPipeError:
        # nobody reads it any longer: flushing it at the end raises nothing
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return OK


def _run(arguments: Sequence[str] | None) -> int:
    from tokendyno.backend.cli.parser import make_parser
    from tokendyno.backend.cli.progress import counts_shown
    from tokendyno.backend.errors import InputError

    try:
        words = sys.argv[1:] if arguments is None else list(arguments)
        options = make_parser(words[0] if words else "").parse_args(words)
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
    print(f"tokendyno: {redact(sentence)}", file=sys.stderr)
    return code
