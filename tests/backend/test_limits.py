"""What the hardware can do: measured before the data sheet, and None before a guess."""

from dataclasses import replace
from pathlib import Path

import pytest

from backend import bandwidth, limits
from backend.gpus import find_gpu
from backend.hardware import Gpu
from backend.models import resolve
from backend.predict import Limits, Setup, floor
from tests.facts import CPU, GIB, H200


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def test_a_card_of_the_catalogue_has_its_data_sheet() -> None:
    found = limits.of_machine(H200, "bfloat16")
    assert found == limits.of_gpu(find_gpu("H200"), "bfloat16") == Limits(4.8e12, 989.4e12, "data sheet of H200-SXM")


def test_what_was_measured_here_goes_before_it() -> None:
    bandwidth.remember(bandwidth.Bandwidth(4.6e12, 4.3e12, "NVIDIA H200", "sum"))
    found = limits.of_machine(H200, "bfloat16")
    assert found == Limits(4.6e12, 989.4e12, "measured on this machine")


def test_without_either_there_is_none_and_it_says_what_to_do() -> None:
    unknown = replace(H200, gpus=(Gpu(0, "NVIDIA X9000", 80 * GIB, 79 * GIB, (9, 0)),))
    for machine, name in ((CPU, "the CPU"), (unknown, "NVIDIA X9000")):
        assert limits.of_machine(machine, "bfloat16") is None
        assert name in limits.remark(machine) and "doctor --bandwidth" in limits.remark(machine)
    bandwidth.remember(bandwidth.Bandwidth(3e12, 2e12, "NVIDIA X9000", "sum"))
    assert limits.of_machine(unknown, "bfloat16") == Limits(3e12, None, "measured on this machine")
    assert "not in the catalogue" in limits.remark(unknown)
    assert limits.remark(H200) == ""


def test_an_unknown_rate_stays_unknown() -> None:
    assert limits.of_gpu(find_gpu("T4"), "bfloat16").flops_per_s is None
    assert limits.of_gpu(find_gpu("T4"), "float16").flops_per_s == 65e12


def test_a_floor_says_what_it_is_made_of() -> None:
    facts, found = resolve("Llama-3-8B"), limits.of_gpu(find_gpu("H200"), "bfloat16")
    light, busy = (floor(facts, Setup(), 64, batch, found) for batch in (1, 1_024))
    assert (limits.work(light), limits.basis(light, found)) == ("15 GB to read", "4,800 GB/s, data sheet of H200-SXM")
    assert (limits.work(busy), limits.basis(busy, found)) == ("15.4 Tflop", "989.4 Tflop/s, data sheet of H200-SXM")
