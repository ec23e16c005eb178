"""How many tokens a text has, by the files of a model that are on this machine: without torch, and in a process of its
own, since such files may be hostile."""

import functools
import subprocess
import sys
from pathlib import Path

from tokendyno.backend.models.counting import answered
from tokendyno.backend.models.files import hub
from tokendyno.backend.models.source import ModelSource

CPU_SECONDS = 5.0
"""Processor time that it may take. pocket's takes 0.1 s."""

_COUNT = """
import sys
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[1])
tokenizer.no_truncation()
print(len(tokenizer.encode(sys.stdin.buffer.read().decode(), add_special_tokens=False).ids))
"""


def count_tokens(source: ModelSource, text: str) -> int | None:
    """Tokens of a text, without those that a tokenizer adds; None where they cannot be counted here."""
    if source.kind == "random":
        return len(text.encode())  # worker/load/random_weights.py: byte_tokenizer
    if source.kind == "gguf":
        return None
    here = hub.snapshot(source.repo, source.at) if source.kind == "hub" else Path(source.path)
    file = here / "tokenizer.json" if here is not None else None
    return _counted(file, file.stat().st_mtime_ns, text) if file is not None and file.is_file() else None


@functools.lru_cache(maxsize=8)
def _counted(file: Path, changed_ns: int, text: str) -> int | None:
    command = [sys.executable, "-P", "-c", _COUNT, str(file)]
    try:
        return int(answered(command, text.encode(), CPU_SECONDS).stdout)
    except (OSError, ValueError, subprocess.SubprocessError):  # the worker will say what is wrong with it
        return None
