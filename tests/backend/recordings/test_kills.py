"""A kill at any moment of an export, an import or a deletion loses nothing and leaves nothing torn."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tokendyno.backend.paths import ROOT


@pytest.mark.slow
def test_kills_at_many_moments_lose_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.support.killed_files", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    found = Counter(json.loads(done.stdout))
    for what in ("export", "import", "delete"):
        assert found[f"{what} not"] > 0, f"no kill came before the end: {found}"
    assert found["export done"] + found["import done"] + found["delete done"] > 0, "every kill came too early"
