"""Models from a Hub: the real client against a fake Hub on the loopback interface."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_hub import fake_hub
from tokendyno.backend.messages import Amount, Progress
from tokendyno.backend.paths import ROOT
from tokendyno.backend.runs.records import ArmEvent
from tokendyno.backend.runs.store import Store
from tokendyno.backend.worker.load.download import WINDOW_S, Arrivals

POCKET = ROOT / "presets" / "models" / "pocket"


BYTES_PER_S = 6e6


def run(model: str, endpoint: str, cache: Path, *args: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(cache), "HF_HUB_DISABLE_XET": "1"}
    environment.pop("HF_HUB_OFFLINE", None)
    command = [sys.executable, *shlex.split(f"-m tokendyno run --model {model} --max-new-tokens 4 --json -"), *args]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_a_hub_model_is_downloaded_with_progress_and_runs(tmp_path: Path) -> None:
    folder = tmp_path / "repo"
    shutil.copytree(POCKET, folder)
    (folder / "pytorch_model.bin").write_bytes(b"never fetched")
    (folder / "modeling_evil.py").write_text("raise SystemExit")
    history = tmp_path / "history.sqlite"
    with fake_hub({"org/pocket": folder}, BYTES_PER_S) as (endpoint, requested):
        process = run("org/pocket", endpoint, tmp_path / "cache", "--history", str(history))
    assert process.returncode == 0, process.stderr[-2000:]
    document: dict[str, Any] = json.loads(process.stdout)
    (arm,) = document["arms"]
    assert len(arm["token_ids"]) == 4
    assert arm["phases_s"]["download"] > 0
    assert not [path for path in requested if path.endswith((".bin", ".py"))]

    amounts = download_amounts(history, document["run"])
    files = [path for path in POCKET.iterdir() if path.suffix in (".json", ".safetensors")]
    total = sum(path.stat().st_size for path in files if path.name != "config.json")  # that one is fetched before
    done_bytes = [amount.done_bytes for amount in amounts]
    assert {amount.total_bytes for amount in amounts} == {total}
    assert done_bytes == sorted(done_bytes) and done_bytes[-1] == total and len(set(done_bytes)) > 2
    rates = [amount.bytes_per_s for amount in amounts if amount.bytes_per_s is not None]
    assert rates and all(0.2 * BYTES_PER_S < rate < 4 * BYTES_PER_S for rate in rates)  # some files at a time


def download_amounts(history: Path, run_id: str) -> list[Amount]:
    """How far the download of a run was, each time that it told."""
    store = Store(history)
    try:
        events = [record.event for record in store.read(run_id) if isinstance(record, ArmEvent)]
    finally:
        store.close()
    return [
        event.amount for event in events if isinstance(event, Progress) and event.phase == "download" and event.amount
    ]


@pytest.mark.slow
def test_a_failed_download_is_told_in_one_sentence(tmp_path: Path) -> None:
    torn = shutil.copytree(POCKET, tmp_path / "torn")
    (torn / "model.safetensors").write_bytes((POCKET / "model.safetensors").read_bytes()[:-8])
    with fake_hub({"org/torn": torn}) as (endpoint, _):
        process = run("org/torn", endpoint, tmp_path / "cache")
    assert process.returncode == 2, process.stderr[-2000:]
    assert "org/torn/model.safetensors is not a complete safetensors file" in process.stderr
    assert "Traceback" not in process.stderr + process.stdout


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_rate_is_that_of_the_last_seconds_and_falls_to_nothing_when_it_stalls(clock: Clock) -> None:
    arrivals = Arrivals(clock)
    arrivals.total_bytes = 10_000
    assert arrivals.amount().bytes_per_s is None  # too early to tell
    for _ in range(20):  # 2 s at 1,000 bytes/s
        clock.now_s += 0.1
        arrivals.add(100)
    amount = arrivals.amount()
    assert (amount.done_bytes, amount.total_bytes) == (2_000, 10_000)
    assert amount.bytes_per_s == pytest.approx(1_000)
    clock.now_s += WINDOW_S + 1
    assert arrivals.amount().bytes_per_s == 0
