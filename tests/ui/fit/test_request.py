"""From the values of the controls to a table or a sentence, and what a pressed row asks for."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tests.support.machines import CPU, H200
from tokendyno.backend import hardware
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors import open_bench
from tokendyno.backend.fit.device import THIS
from tokendyno.backend.hosting.limits import LIMITS
from tokendyno.backend.models import catalogue
from tokendyno.ui.fit.request import find, read_taken, write_amounts

FIRST, SHORT = write_amounts(None, 1), write_amounts(512, 1)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Bench]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(hardware, "detect", lambda: CPU)
    made = open_bench()
    yield made
    made.close()


@pytest.mark.parametrize("entry", catalogue()[::6], ids=lambda entry: entry.name)
def test_a_model_of_the_catalogue_has_a_table_without_being_loaded(bench: Bench, entry: Any) -> None:
    fit = find(bench, entry.name, "H200-SXM", FIRST).fit
    assert fit.rows and fit.context == min(8_192, fit.facts.max_positions)
    assert bench.pool.pids == []


def test_a_card_by_name_by_size_or_this_machine(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find(bench, "gpt2", " rtx 4090 ", SHORT).fit.device.name == "RTX-4090"
    assert find(bench, "gpt2", "24GiB", SHORT).fit.device.memory_bytes == 24 << 30
    assert find(bench, "gpt2", THIS, SHORT).fit.device.name == CPU.cpu
    monkeypatch.setattr(hardware, "detect", lambda: H200)
    assert find(bench, "gpt2", THIS, SHORT).fit.device.name == "NVIDIA H200"


def amounts(context: Any, batch: Any = 1) -> str:
    """What the sliders would send."""
    return msgspec.json.encode({"context": context, "batch": batch}).decode()


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ((None, "T4", FIRST), "The model is missing"),
        (("gpt2", "T4", None), "The context is missing"),
        (("gpt2", "T4", "{"), "cannot be read. Reload"),
        (("gpt2", "T4", amounts(0.5)), "whole number"),
        (("gpt2", "T4", amounts(None, "")), "Batch size is empty"),
        (("gpt2", "T4", amounts(-1)), "Context is -1; it must be a whole number from 1 on"),
        (("gpt2", "T4", amounts(None, 1e300)), "from 1 to"),
        (("gpt2", "24", FIRST), "24GiB"),
        (("gpt2", "<img src=x>", FIRST), "no GPU '<img src=x>'"),
        (("no-such", "T4", FIRST), "There is no model"),
        (("Llama-3-8B", "T4", FIRST, 3), "Take one of 1, 2, 4, 8"),
        (("Llama-3-8B", "T4", FIRST, None), "GPUs is empty"),
        (("Llama-3-8B", THIS, FIRST, 2), "has no GPUs, not 2"),
    ],
)
def test_what_cannot_be_is_a_sentence(bench: Bench, values: tuple[Any, ...], says: str) -> None:
    with pytest.raises(InputError, match=says):
        find(bench, *values)


def test_a_context_beyond_the_model_is_lowered_and_said(bench: Bench) -> None:
    fit, lowered = find(bench, "gpt2", "T4", write_amounts(2_000, 1))
    assert fit.context == 1_024 and "1,024 positions: the context of 2,000 was lowered to that" in lowered
    fit, lowered = find(bench, "gpt2", "T4", write_amounts(1_024, 1))
    assert (fit.context, lowered) == (1_024, "")


def test_strangers_name_no_folders(bench: Bench, tmp_path: Path) -> None:
    bench.limits = LIMITS["public"]
    with pytest.raises(InputError, match="Local paths are not allowed here"):
        find(bench, str(tmp_path), "T4", FIRST)


def pressed(data: object) -> Any:
    return SimpleNamespace(_data=data)


def test_a_pressed_row_holds_choices_of_the_table_and_nothing_else() -> None:
    assert read_taken(pressed({"choices": {"quantization": "bnb-nf4", "cache": "static"}}))["cache"] == "static"
    assert read_taken(pressed({"choices": {"prefill": "chunks-2048"}})) == {"prefill": "chunks-2048"}
    for value in (
        None,
        {},
        {"choices": {"quantization": "x"}},
        {"choices": {"compile": "on"}},
        {"choices": {"batching": "static"}},
        {"choices": {"cache": 1}},
    ):
        with pytest.raises(InputError, match="This row cannot be read"):
            read_taken(pressed(value))
