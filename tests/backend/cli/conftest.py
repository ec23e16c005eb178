"""A working folder for the command line's tests."""

import shutil
from pathlib import Path

import pytest

from tests.support.command_line import POCKET


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with every kind of wrong file."""
    for name in ("empty", "pickle", "cut", "bare"):
        (tmp_path / name).mkdir()
    for name in ("pickle", "cut", "bare"):
        shutil.copy(POCKET / "config.json", tmp_path / name)
    (tmp_path / "pickle" / "pytorch_model.bin").write_bytes(b"\x80\x04")
    whole = (POCKET / "model.safetensors").read_bytes()
    (tmp_path / "cut" / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "latin.txt").write_bytes(b"\xff\xfe")
    (tmp_path / "p.txt").write_text("One day, a sad robot went to the beach.")
    monkeypatch.chdir(tmp_path)
    return tmp_path
