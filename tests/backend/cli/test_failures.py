"""Runs that fail or are stopped: exit code, one sentence, the partial result, no worker left behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.command_line import MODEL, POCKET, SHORT
from tests.support.processes import gone, wait_for
from tokendyno.backend.cli.main import main
from tokendyno.backend.paths import ROOT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change", "part"),
    [
        (
            "config.json",
            {"model_type": "llama", "hidden_act": "unheard", "attention_bias": False},
            "config (config.json)",
        ),
        pytest.param(
            "tokenizer.json",
            {"model": {"type": "X"}},
            "tokenizer (tokenizer.json, tokenizer_config.json)",
            marks=pytest.mark.full,
        ),
    ],
)
def test_what_transformers_cannot_read_is_no_fault_of_a_choice(
    name: str, change: dict[str, object], part: str, room: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(POCKET, room / "odd")
    (room / "odd" / name).write_text(json.dumps(json.loads((POCKET / name).read_text()) | change))
    assert main(["run", "--model", "./odd", *SHORT]) == 2
    sentence = capsys.readouterr().err.splitlines()[-1]
    assert sentence.startswith(f"tokendyno: The model's {part} cannot be read (")
    assert sentence.endswith("). Copy it again from the original checkpoint, or choose another model.")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple["subprocess.Popen[str]", list[str]]]:
    """A long run in the middle of its tokens, and what it has said so far."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tokendyno",
            "run",
            "--max-new-tokens",
            str(MODEL.max_positions - 100),
            "--ignore-eos",
            "--json",
            str(tmp_path / "out.json"),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    lines: list[str] = []
    while not any("A: run" in line for line in lines):
        lines.append(process.stderr.readline())
        assert lines[-1], "it ended too early"
    yield process, lines
    process.kill()
    process.communicate()


def worker_of(process: "subprocess.Popen[str]") -> psutil.Process:
    (template,) = psutil.Process(process.pid).children()
    (worker,) = template.children()
    return worker


@pytest.mark.slow
def test_a_worker_that_is_killed_is_a_failed_run_with_its_partial_result(
    running: tuple["subprocess.Popen[str]", list[str]], tmp_path: Path
) -> None:
    process, _ = running
    worker = worker_of(process)
    wait_for(lambda: worker.cpu_times().user, 5)
    worker.kill()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "Arm A stopped during the measured run: The worker process was killed by SIGKILL" in err.splitlines()[-1]
    assert "Traceback" not in err
    document = json.loads((tmp_path / "out.json").read_text())
    assert (document["status"], document["arms"][0]["state"]) == ("failed", "failed")
    assert "SIGKILL" in document["message"]
    assert out == "" or "arm A" in out


def test_ctrl_c_writes_what_was_measured_and_leaves_no_worker(
    running: tuple["subprocess.Popen[str]", list[str]], tmp_path: Path
) -> None:
    process, _ = running
    pid = worker_of(process).pid
    wait_for(lambda: psutil.Process(pid).cpu_times().user > 0, 5)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    (arm,) = json.loads((tmp_path / "out.json").read_text())["arms"]
    assert arm["state"] == "cancelled"
    assert (
        len(arm["latency_s"])
        == len(arm["token_ids"])
        == len(arm["kv_bytes_predicted"]["full"])
        < MODEL.max_positions - 100
    )
    assert arm["kv_bytes"] == arm["kv_bytes_predicted"]
    wait_for(lambda: gone(pid), 5)
