"""Entry of the command line: parses, runs one command, and turns every error into one sentence and an exit code."""

import io
import os
import sys
from collections.abc import Sequence

from backend.cli.commands import BAD_INPUT, OK, STOPPED, CommandFailed
from backend.cli.parser import make_parser
from backend.errors import InputError
from backend.redact import redact


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of the console script. Returns the exit code: 0, 2 bad input, 3 failed run, 130 stopped with Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # generated text must not break an ASCII terminal
    try:
        options = make_parser().parse_args(arguments)
        code = int(options.act(options))
        if sys.stdout is not None:
            sys.stdout.flush()  # raises here, where it is caught, if the reader of the pipe has gone
        return code
    except InputError as error:
        return _fail(str(error), BAD_INPUT)
    except CommandFailed as error:
        return _fail(str(error), error.code)
    except KeyboardInterrupt:
        return _fail("stopped.", STOPPED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return OK


def _fail(sentence: str, code: int) -> int:
    print(f"tokendyno: {redact(sentence)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
