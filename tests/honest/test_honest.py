"""Honest runs of architectures of different kinds: no row of the ledger is amber or red."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from tokendyno.backend.models import counting
from tools.honest import ARMS, count_here, run_arm
from tools.tiny_config import tiny_config

RUNS = [
    ("llama", "own loop"),
    ("qwen3_next", "default"),
    ("deepseek_v3", "batch of 3"),
    ("gpt_oss", "fused"),
    ("xglm", "own loop"),
    ("doge", "default"),
    ("inkling_text", "default"),
    ("mllama", "static"),
]


@pytest.mark.parametrize(("architecture", "arm"), RUNS)
def test_an_honest_run_raises_no_alarm(
    architecture: str, arm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "_ask", count_here)
    (tmp_path / "config.json").write_text(json.dumps(tiny_config(architecture)))
    outcome: dict[str, Any] = run_arm(f"random:{tmp_path}", *ARMS[arm])
    assert outcome.get("alarms") == [], outcome
    assert outcome["verified"] >= 1
