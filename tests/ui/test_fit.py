"""The Fit page's one handler: from the values of the controls to a table or a sentence."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backend import hardware
from backend.engine.bench import Bench
from backend.errors import InputError
from backend.executors import open_bench
from backend.fit.device import THIS
from backend.hosting.limits import LIMITS
from backend.models import catalogue
from tests.support.machines import CPU, H200
from ui.fit import find


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Bench]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(hardware, "detect", lambda: CPU)
    made = open_bench()
    yield made
    made.close()


@pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: entry.name)
def test_every_model_of_the_catalogue_has_a_table_without_being_loaded(bench: Bench, entry: Any) -> None:
    found = find(bench, entry.name, "H200-SXM", 0, 1)
    assert found.rows and found.context == min(8_192, found.facts.max_positions)
    assert bench.pool.pids == []


def test_a_card_by_name_by_size_or_this_machine(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find(bench, "gpt2", " rtx 4090 ", 512, 1).device.name == "RTX-4090"
    assert find(bench, "gpt2", "24GiB", 512, 1).device.memory_bytes == 24 << 30
    assert find(bench, "gpt2", THIS, 512, 1).device.name == CPU.cpu
    monkeypatch.setattr(hardware, "detect", lambda: H200)
    assert find(bench, "gpt2", THIS, 512, 1).device.name == "NVIDIA H200"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ((None, "T4", 0, 1), "The model is missing"),
        (("gpt2", None, 0, 1), "The GPU is missing"),
        (("gpt2", "T4", None, 1), "Context is empty"),
        (("gpt2", "T4", 0.5, 1), "whole number"),
        (("gpt2", "T4", 0, None), "Batch size is empty"),
        (("gpt2", "T4", 2_000, 1), "1,024 positions"),
        (("gpt2", "T4", -1, 1), "at least 1"),
        (("gpt2", "T4", 0, 0), "from 1 to"),
        (("gpt2", "24", 0, 1), "24GiB"),
        (("gpt2", "", 0, 1), "no GPU ''"),
        (("gpt2", "<img src=x>", 0, 1), "no GPU '<img src=x>'"),
        (("no-such", "T4", 0, 1), "Unknown model"),
        (("Llama-3-8B", "T4", 0, 1, 3), "Take one of 1, 2, 4, 8"),
        (("Llama-3-8B", "T4", 0, 1, None), "GPUs is empty"),
        (("Llama-3-8B", "T4", 0, 1, 1.5), "whole number"),
        (("Llama-3-8B", THIS, 0, 1, 2), "has no GPUs, not 2"),
    ],
)
def test_what_cannot_be_is_a_sentence(bench: Bench, values: tuple[Any, ...], says: str) -> None:
    with pytest.raises(InputError, match=says):
        find(bench, *values)


def test_strangers_name_no_folders(bench: Bench, tmp_path: Path) -> None:
    bench.limits = LIMITS["public"]
    with pytest.raises(InputError, match="Local paths are not allowed here"):
        find(bench, str(tmp_path), "T4", 0, 1)
