"""The command line as a process of its own, and the form that its refusals have."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from backend.models import resolve
from backend.paths import PRESETS, ROOT

POCKET = PRESETS / "models" / "pocket"
MODEL = resolve("pocket")
SHORT = ("--max-new-tokens", "6", "--ignore-eos")


def cli(*arguments: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """`python -m backend ...` as a process of its own."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-m", "backend", *arguments],
        cwd=cwd, env={**os.environ, "PYTHONPATH": path, **(env or {})}, capture_output=True, text=True, timeout=200,
    )  # fmt: skip


def sentence(code: int, out: str, err: str, want: int = 2) -> str:
    """The one sentence of a refusal, its form checked."""
    assert code == want, err
    assert out == ""
    assert "Traceback" not in err
    (line,) = err.splitlines()
    assert line.startswith("tokendyno: ")
    assert line.endswith(".")
    return line
