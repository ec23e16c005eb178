"""A checkpoint of random weights on this disk, for as long as something is measured with it."""

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from backend.errors import InputError
from backend.executors.subprocess import environment
from backend.files.own_folder import own_folder

WRITER = "backend.worker.load.written"


@contextlib.contextmanager
def written(model: str) -> Iterator[Path]:
    """The folder of a model, such as random:Qwen3-0.6B, deleted afterwards. InputError where it cannot be written."""
    with own_folder("tokendyno-weights-") as folder:
        command = [sys.executable, "-m", WRITER, model, str(folder)]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise InputError(
                f"{model} could not be written to {tempfile.gettempdir()}: {last}. Set TMPDIR to a disk with room."
            )
        yield folder
