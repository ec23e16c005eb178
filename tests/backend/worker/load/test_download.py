"""Models from a Hub: the real client against a fake Hub on the loopback interface."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from backend.paths import ROOT
from tests.support.fake_hub import fake_hub

POCKET = ROOT / "presets" / "models" / "pocket"


def run(model: str, endpoint: str, cache: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(cache), "HF_HUB_DISABLE_XET": "1"}
    environment.pop("HF_HUB_OFFLINE", None)
    command = [sys.executable, "-m", "backend", "run", "--model", model, "--max-new-tokens", "4", "--json", "-"]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_a_hub_model_is_downloaded_with_progress_and_runs(tmp_path: Path) -> None:
    folder = tmp_path / "repo"
    shutil.copytree(POCKET, folder)
    (folder / "pytorch_model.bin").write_bytes(b"never fetched")
    (folder / "modeling_evil.py").write_text("raise SystemExit")
    with fake_hub({"org/pocket": folder}) as (endpoint, asked):
        done = run("org/pocket", endpoint, tmp_path / "cache")
    assert done.returncode == 0, done.stderr[-2000:]
    document: dict[str, Any] = json.loads(done.stdout)
    (arm,) = document["arms"]
    assert len(arm["token_ids"]) == 4
    assert arm["phases_s"]["download"] > 0
    assert not [path for path in asked if path.endswith((".bin", ".py"))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "says"),
    [("org/nothing", "no public model 'org/nothing'"), ("org/pickled", "has no safetensors weights")],
)
def test_a_failed_download_is_told_in_one_sentence(tmp_path: Path, model: str, says: str) -> None:
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    shutil.copy(POCKET / "config.json", pickled)
    (pickled / "pytorch_model.bin").write_bytes(b"pickle")
    with fake_hub({"org/pickled": pickled}) as (endpoint, _asked):
        done = run(model, endpoint, tmp_path / "cache")
    assert done.returncode == 2, done.stderr[-2000:]
    assert says in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
