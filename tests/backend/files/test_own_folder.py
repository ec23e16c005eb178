"""Temporary folders of one process: gone with it, at the latest when the next one makes its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tokendyno.backend.files.own_folder import own_folder
from tokendyno.backend.paths import ROOT

HOLD = """
import sys
from pathlib import Path
from tokendyno.backend.files.own_folder import own_folder
with own_folder("mine-", Path(sys.argv[1])) as folder:
    (folder / "large").write_text("weights")
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_a_folder_is_private_and_goes_with_what_lies_in_it(tmp_path: Path) -> None:
    with own_folder("mine-", tmp_path) as folder:
        assert folder.parent == tmp_path and folder.stat().st_mode & 0o077 == 0
        (folder / "large").write_text("weights")
        with own_folder("mine-", tmp_path) as other:
            assert sorted(tmp_path.iterdir()) == sorted([folder, other])
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_uses_is_not(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        used = Path(process.stdout.readline().strip())
        with own_folder("mine-", tmp_path):
            assert (used / "large").exists()
        process.kill()
    assert (used / "large").exists()
    with own_folder("mine-", tmp_path) as folder:
        assert list(tmp_path.iterdir()) == [folder]


def test_links_files_and_folders_of_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, parent = tmp_path / "target", tmp_path / "temporary"
    target.mkdir()
    parent.mkdir()
    (parent / "mine-link").symlink_to(target)
    (parent / "mine-file").touch()
    (parent / "another").mkdir()
    with own_folder("mine-", parent):
        pass
    assert sorted(path.name for path in parent.iterdir()) == ["another", "mine-file", "mine-link"] and target.is_dir()
    (parent / "mine-theirs").mkdir()
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    with own_folder("mine-", parent):
        assert (parent / "mine-theirs").is_dir()
