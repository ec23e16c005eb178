"""Peak rates: a measurement wins over the data sheet, and None over a guess."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.machines import CPU, GIB, H200
from tokendyno.backend.hardware import Gpu, Machine, bandwidth, peak_rates
from tokendyno.backend.hardware.gpu_specs import find_gpu
from tokendyno.backend.hardware.peak_rates import PeakRates
from tokendyno.backend.models import resolve
from tokendyno.backend.predict import roofline
from tokendyno.backend.predict.roofline import bound
from tokendyno.backend.predict.setup import Setup


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def test_a_card_of_the_catalogue_has_its_data_sheet() -> None:
    rates = peak_rates.of_machine(H200, "bfloat16")
    assert (
        rates
        == peak_rates.of_gpu(find_gpu("H200"), "bfloat16")
        == PeakRates(4.8e12, 989.4e12, "data sheet of H200-SXM", 450e9, "NVLink, data sheet of H200-SXM")
    )


def test_what_was_measured_here_goes_before_it() -> None:
    bandwidth.remember(bandwidth.Bandwidth(4.6e12, 4.3e12, "NVIDIA H200", "sum"))
    rates = peak_rates.of_machine(H200, "bfloat16")
    assert rates == PeakRates(4.6e12, 989.4e12, "measured on this machine", 450e9, "NVLink, data sheet of H200-SXM")


def test_without_either_there_is_none_and_it_says_what_to_do() -> None:
    unknown = replace(H200, gpus=(Gpu(0, "NVIDIA X9000", 80 * GIB, 79 * GIB, (9, 0)),))
    for machine, name in ((CPU, "the CPU"), (unknown, "NVIDIA X9000")):
        assert peak_rates.of_machine(machine, "bfloat16") is None
        assert name in peak_rates.remark(machine) and "doctor --bandwidth" in peak_rates.remark(machine)
    bandwidth.remember(bandwidth.Bandwidth(3e12, 2e12, "NVIDIA X9000", "sum"))
    assert peak_rates.of_machine(unknown, "bfloat16") == PeakRates(
        3e12, None, "measured on this machine, not in the catalogue"
    )
    assert "not in the catalogue" in peak_rates.remark(unknown)
    assert peak_rates.remark(H200) == ""


def test_a_bound_names_its_rate_and_its_work() -> None:
    facts, rates = resolve("Llama-3-8B"), peak_rates.of_gpu(find_gpu("H200"), "bfloat16")
    light, busy = (bound(facts, Setup(), 64, batch, rates) for batch in (1, 1_024))
    assert (roofline.work(light, rates), roofline.basis(light, rates)) == (
        "15 GB to read",
        "4,800 GB/s, data sheet of H200-SXM",
    )
    assert (roofline.work(busy, rates), roofline.basis(busy, rates)) == (
        "15.4 Tflop",
        "989.4 Tflop/s, data sheet of H200-SXM",
    )


# --- a GPU that is not in the catalogue -----------------------------------------------------------

UNLISTED = replace(H200, gpus=(Gpu(0, "NVIDIA X9000", 80 * GIB, 79 * GIB, (9, 0)),))


@pytest.fixture
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peak_rates, "_TRIED", set())


@pytest.mark.parametrize("machine", [CPU, H200])
def test_a_cpu_and_a_known_card_are_not_measured(machine: Machine, untried: None) -> None:
    progress: list[str] = []
    peak_rates.measure_unknown_gpu(machine, progress.append, lambda: False)
    assert progress == []


def test_an_unknown_card_is_measured_once_and_its_floors_know_it(
    untried: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By a process, as always, with a fake module, since there is no such GPU."""
    progress: list[str] = []
    answer = '{"read_bytes_per_s": 3e12, "copy_bytes_per_s": 2e12, "method": "sum"}'
    stand_in(tmp_path, monkeypatch, f"print({answer!r})")
    peak_rates.measure_unknown_gpu(UNLISTED, progress.append, lambda: False)
    assert progress == ["measuring the memory bandwidth: NVIDIA X9000 is not in the catalogue"]
    rates = peak_rates.of_machine(UNLISTED, "bfloat16")
    assert rates is not None and (rates.bandwidth_bytes_per_s, rates.flops_per_s) == (3e12, None)
    assert "not in the catalogue" in rates.source
    peak_rates.measure_unknown_gpu(UNLISTED, progress.append, lambda: False)
    assert len(progress) == 1


def test_a_card_that_cannot_be_measured_is_said_and_not_tried_again(
    untried: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    progress: list[str] = []
    stand_in(tmp_path, monkeypatch, "raise SystemExit('CUDA error: all is lost')")
    for _ in range(2):
        peak_rates.measure_unknown_gpu(UNLISTED, progress.append, lambda: False)
    assert len(progress) == 2 and "could not be measured: CUDA error: all is lost" in progress[1]
    assert peak_rates.of_machine(UNLISTED, "bfloat16") is None


def test_a_stop_ends_the_measurement_and_it_is_tried_again_with_the_next_run(
    untried: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    progress: list[str] = []
    stand_in(tmp_path, monkeypatch, "import time; time.sleep(60)")
    for _ in range(2):
        peak_rates.measure_unknown_gpu(UNLISTED, progress.append, lambda: True)
    assert len(progress) == 2 and not any("could not" in sentence for sentence in progress)


@pytest.mark.parametrize("machine", [CPU, H200, UNLISTED], ids=["a CPU", "a known card", "an unknown card"])
def test_any_device_is_measured_once_when_there_is_time(
    machine: Machine, untried: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer = '{"read_bytes_per_s": 3e12, "copy_bytes_per_s": 2e12, "method": "sum"}'
    stand_in(tmp_path, monkeypatch, f"open({str(tmp_path / 'runs')!r}, 'a').write('.'); print({answer!r})")
    assert all(peak_rates.measure_once(machine, lambda: False) for _ in range(2))
    assert (tmp_path / "runs").read_text() == ".", "it was measured again"
    rates = peak_rates.of_machine(machine, "bfloat16")
    assert rates is not None and rates.bandwidth_bytes_per_s == 3e12 and "measured" in rates.source


def test_a_run_ends_the_measurement_which_is_then_still_due(
    untried: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(tmp_path, monkeypatch, "import time; time.sleep(60)")
    assert not peak_rates.measure_once(CPU, lambda: True)
    stand_in(tmp_path, monkeypatch, "raise SystemExit('no')")
    assert peak_rates.measure_once(CPU, lambda: False), "a failure is not tried again"
    assert peak_rates.of_machine(CPU, "bfloat16") is None


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Replaces the module that the measuring process runs."""
    fake = folder / "python"
    fake.write_text(f"#!{sys.executable}\n{code}\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
