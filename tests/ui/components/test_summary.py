"""One line on a model, one on the machine."""

import pytest

from tokendyno.backend import hardware
from tokendyno.backend.models import resolve
from tokendyno.ui.components.summary import machine_line, model_line


@pytest.mark.parametrize(
    ("model", "parts"),
    [
        ("pocket", ["sliding (window 128)", "experts per token"]),
        ("gpt2", ["124 M parameters in float32", "12 layers: all full attention", "1,024 positions"]),
        ("Mistral-7B-v0.1", ["7.24 B parameters", "32 sliding (window 4,096), 0 full", "8 KV heads, head size 128"]),
        ("random:gpt2", ["the text is noise"]),
        ("bert-base-uncased", ["12 layers: encoder"]),
        ("random:bert-base-uncased", ["Random weights: latency and memory are real."]),
    ],
)
def test_a_model_is_told_in_one_line(model: str, parts: list[str]) -> None:
    line = model_line(resolve(model))
    assert all(part in line for part in parts), line
    assert "\n" not in line and len(line) < 220


def test_a_machine_without_a_gpu_says_so() -> None:
    line = machine_line(hardware.detect())
    assert line.startswith("CPU only: ") and "free" not in line, "the arms say how much is, at one moment"
