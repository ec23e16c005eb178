"""Measured bandwidth: a real measurement, what is stored, and the reasons for failing."""

import itertools
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import torch

from tests.support.machines import CPU, H200
from tokendyno.backend import hardware
from tokendyno.backend.hardware.bandwidth import Bandwidth, MeasureFailed, measure, recall, remember
from tokendyno.backend.worker import bandwidth as inside


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path


def test_a_rate_is_the_bytes_of_the_buffer_by_the_seconds_of_the_fastest_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that shows a quarter of a second for one call of each kind and half a second for the others."""
    monkeypatch.setattr(time, "perf_counter", iter(clock()).__next__)
    monkeypatch.setitem(inside.BUFFER_BYTES, "cpu", 8 << 20)
    threads = torch.get_num_threads()
    rates = inside.measure("cpu")
    assert torch.get_num_threads() == threads
    assert "8,388,608 bytes" in str(rates["method"]) and "fastest of" in str(rates["method"])
    assert rates["read_bytes_per_s"] == (8 << 20) / 0.25
    assert rates["copy_bytes_per_s"] == 2 * (8 << 20) / 0.25


def clock() -> Iterator[float]:
    """Begin and end of each call: the first of each kind takes 0.25 s, the others 0.5 s, as on a busy machine."""
    now = 0.0
    for number in itertools.count():
        yield now
        now += 0.5 if number % inside.REPEATS["cpu"] else 0.25
        yield now


@pytest.mark.slow
def test_a_process_of_its_own_measures_and_the_result_is_kept() -> None:
    machine = hardware.detect()
    measured = measure(machine)
    assert measured.device == machine.name and measured.measured > 1e9
    assert remember(measured) == ""
    assert recall(machine.name) == measured


def test_each_device_keeps_its_own_and_only_the_newest() -> None:
    cpu = Bandwidth(4e10, 3e10, CPU.name, "sum", 1.0)
    gpu = Bandwidth(4.6e12, 4.3e12, H200.name, "sum", 1.0)
    newer = msgspec.structs.replace(cpu, read_bytes_per_s=5e10)
    for measured in (cpu, gpu, newer):
        assert remember(measured) == ""
    assert (recall(CPU.name), recall(H200.name)) == (newer, gpu)
    assert recall(replace(CPU, cores=64).name) is None


@pytest.mark.parametrize("data", [b"", b"[", b"{}", b'[{"device": 1}]', b'[{"device": "\xff"}]'])
def test_a_kept_file_that_cannot_be_read_counts_as_none_and_is_written_anew(own_folder: Path, data: bytes) -> None:
    file = own_folder / "tokendyno" / "bandwidth.json"
    file.parent.mkdir()
    file.write_bytes(data)
    assert recall(CPU.name) is None and hardware.detect().bfloat16 == ()
    assert remember(Bandwidth(1e10, 1e10, CPU.name, "sum")) == ""
    assert recall(CPU.name) is not None and len(json.loads(file.read_text())) == 1


def test_a_folder_that_cannot_be_written_is_reported(own_folder: Path) -> None:
    (own_folder / "tokendyno").write_text("a file")
    assert "cannot be written" in remember(Bandwidth(1e10, 1e10, "x", "sum"))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise SystemExit('CUDA driver is too old')", "too old"),
        ("print('not json')", "code 0"),
        ('print(\'{"read_bytes_per_s": 0, "copy_bytes_per_s": 1, "method": "x"}\')', "clock"),
        ("import time; time.sleep(60)", "within 1 s"),
    ],
)
def test_a_measurement_that_fails_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, said: str
) -> None:
    fake = tmp_path / "python"
    fake.write_text(f"#!{sys.executable}\n{code}\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    with pytest.raises(MeasureFailed, match=said):
        measure(CPU, deadline_s=1 if "1 s" in said else 30)
