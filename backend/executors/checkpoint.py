"""A checkpoint of random weights on this disk, for as long as something is measured with it."""

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tokendyno.backend.child_python import last_words, python_command
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors.subprocess import environment
from tokendyno.backend.files.own_folder import own_folder

WRITER = "tokendyno.backend.worker.load.random_weights"


@contextlib.contextmanager
def written(model: str) -> Iterator[Path]:
    """The folder of a model, such as random:Qwen3-0.6B, deleted afterwards. InputError where it cannot be written."""
    with own_folder("tokendyno-weights-") as folder:
        done = subprocess.run(
            python_command(WRITER, model, str(folder)), env=environment(), capture_output=True, text=True
        )
        if done.returncode:
            last = last_words(done.stderr.splitlines()) or f"exit code {done.returncode}"
            raise InputError(
                f"{model} could not be written to {tempfile.gettempdir()}: {last}. Set TMPDIR to a disk with room."
            )
        yield folder
