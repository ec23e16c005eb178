"""A broken or missing embedded model is reported in one clear sentence, and the page is still built."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tokendyno.backend.paths import ROOT

BUILD = (
    "from tokendyno.backend.executors import open_bench; from tokendyno.ui.page import build; b = open_bench(); "
    "build(b); print(*b.messages, sep='\\n')"
)


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.slow
def test_it_is_reported_in_a_sentence_and_the_page_is_built(tmp_path: Path) -> None:
    copy, says = tmp_path, "not a complete safetensors file"
    for name in ("backend", "ui", "presets", "tokendyno"):
        shutil.copytree(ROOT / name, copy / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    weights = copy / "presets" / "models" / "pocket" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100_000])
    built = python(copy, "-c", BUILD)
    assert built.returncode == 0, built.stderr[-2000:]
    assert "The default model pocket cannot run" in built.stdout and says in built.stdout
    run = python(copy, "-m", "tokendyno", "run", "--max-new-tokens", "2")
    assert run.returncode == 2
    assert says in run.stderr and "Traceback" not in run.stderr
