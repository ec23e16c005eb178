"""Measured bandwidth: a real measurement, what is stored, and the reasons for failing."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from backend import hardware
from backend.hardware import bandwidth
from backend.hardware.bandwidth import Bandwidth, MeasureFailed, measure, recall, remember
from tests.support.machines import CPU, H200


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path


def test_this_machine_reads_and_copies_at_a_plausible_rate() -> None:
    import torch

    from backend.worker.bandwidth import measure as inside

    threads = torch.get_num_threads()
    found = inside("cpu", 64 << 20)
    assert torch.get_num_threads() == threads
    for name in ("read_bytes_per_s", "copy_bytes_per_s"):
        rate = found[name]
        assert isinstance(rate, float) and 1e8 < rate < 1e13, name
    assert "67,108,864 bytes" in str(found["method"]) and "median of" in str(found["method"])


@pytest.mark.slow
def test_a_process_of_its_own_measures_and_the_result_is_kept() -> None:
    machine = hardware.detect()
    found = measure(machine)
    assert found.device == bandwidth.device_name(machine) and found.measured > 1e9
    assert remember(found) == ""
    assert recall(machine) == found


def test_each_device_keeps_its_own_and_only_the_newest() -> None:
    cpu = Bandwidth(4e10, 3e10, bandwidth.device_name(CPU), "sum", 1.0)
    gpu = Bandwidth(4.6e12, 4.3e12, bandwidth.device_name(H200), "sum", 1.0)
    for found in (cpu, gpu, replace_rate(cpu, 5e10)):
        assert remember(found) == ""
    kept, of_gpu = recall(CPU), recall(H200)
    assert kept is not None and kept.read_bytes_per_s == 5e10 and of_gpu == gpu
    assert recall(replace(CPU, cores=64)) is None


def replace_rate(found: Bandwidth, rate: float) -> Bandwidth:
    return Bandwidth(rate, found.copy_bytes_per_s, found.device, found.method, found.measured)


@pytest.mark.parametrize("text", ["", "[", "{}", '[{"device": 1}]'])
def test_a_kept_file_that_cannot_be_read_counts_as_none_and_is_written_anew(own_folder: Path, text: str) -> None:
    file = own_folder / "tokendyno" / "bandwidth.json"
    file.parent.mkdir()
    file.write_text(text)
    assert recall(CPU) is None
    assert remember(Bandwidth(1e10, 1e10, bandwidth.device_name(CPU), "sum")) == ""
    assert recall(CPU) is not None and len(json.loads(file.read_text())) == 1


def test_a_folder_that_cannot_be_written_is_reported(own_folder: Path) -> None:
    (own_folder / "tokendyno").write_text("a file")
    assert "cannot be written" in remember(Bandwidth(1e10, 1e10, "x", "sum"))


@pytest.mark.parametrize(
    ("code", "said"),
    [("raise SystemExit('CUDA driver is too old')", "too old"), ("print('not json')", "code 0"),
     ("print('{\"read_bytes_per_s\": 0, \"copy_bytes_per_s\": 1, \"method\": \"x\"}')", "clock"),
     ("import time; time.sleep(60)", "within 3 s")],
)  # fmt: skip
def test_a_measurement_that_fails_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str
) -> None:
    fake = tmp_path / "python"
    fake.write_text(f"#!{sys.executable}\n{code}\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    with pytest.raises(MeasureFailed, match=said):
        measure(CPU, deadline_s=3)
