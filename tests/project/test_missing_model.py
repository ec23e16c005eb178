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


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the product that a test may break."""
    for name in ("backend", "ui", "presets", "tokendyno"):
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        ("half the weights", "not a complete safetensors file"),
        pytest.param("no weights", "has no weights", marks=pytest.mark.slow),
        pytest.param("no folder", "has no config.json", marks=pytest.mark.slow),
    ],
)
def test_it_is_reported_in_a_sentence_and_the_page_is_built(copy: Path, harm: str, says: str) -> None:
    pocket = copy / "presets" / "models" / "pocket"
    weights = pocket / "model.safetensors"
    if harm == "no weights":
        weights.unlink()
    elif harm == "half the weights":
        weights.write_bytes(weights.read_bytes()[:-100_000])
    else:
        shutil.rmtree(pocket)
    built = python(copy, "-c", BUILD)
    assert built.returncode == 0, built.stderr[-2000:]
    assert "The default model pocket cannot run" in built.stdout and says in built.stdout
    run = python(copy, "-m", "tokendyno", "run", "--max-new-tokens", "2")
    assert run.returncode == 2
    assert says in run.stderr and "Traceback" not in run.stderr


@pytest.mark.slow
def test_nothing_is_reported_of_a_complete_model(copy: Path) -> None:
    built = python(copy, "-c", BUILD)
    assert built.returncode == 0, built.stderr[-2000:]
    assert "pocket" not in built.stdout
