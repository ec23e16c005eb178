"""The command line as a process of its own or in this one, and the form that its refusals have."""

import contextlib
import io
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tokendyno.backend.child_python import import_variables, python_command
from tokendyno.backend.cli.main import main
from tokendyno.backend.cli.terminal import UNFOLDED, Block, console_of, drawn
from tokendyno.backend.models import resolve
from tokendyno.backend.paths import PRESETS, ROOT

POCKET = PRESETS / "models" / "pocket"
MODEL = resolve("pocket")
SHORT = ("--max-new-tokens", "6", "--ignore-eos")


def text_of(blocks: Iterable[Block], columns: int = UNFOLDED, color: bool = False) -> str:
    """Blocks as a terminal of so many columns shows them, or a file."""
    console = console_of(io.StringIO(), "always" if color else "never")
    console.width = columns
    return drawn(blocks, console)


def cli(*arguments: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """`tokendyno ...` as a process of its own, which imports nothing from `cwd`, like the console script."""
    return subprocess.run(
        python_command("tokendyno", *arguments),
        cwd=cwd,
        env={**os.environ, **import_variables(), **(env or {})},
        capture_output=True,
        text=True,
        timeout=200,
    )


def cli_here(*arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """The same in this process, with workers that are forked: for tests of anything but how either starts."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.chdir(cwd)
        code = main(list(arguments))
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def sentence(code: int, out: str, err: str, want: int = 2) -> str:
    """The one sentence of a refusal, its form checked."""
    assert code == want, err
    assert out == ""
    assert "Traceback" not in err
    (line,) = err.splitlines()
    assert line.startswith("tokendyno: ")
    assert line.endswith(".")
    return line
