"""Peaks of arms that nothing was fitted to: those that MEASUREMENTS.md lists for one H200."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from backend.arms.parse import parse_arm
from backend.config import Workload
from backend.models import resolve
from backend.paths import ROOT
from backend.predict.memory import MIB
from tests.support.machines import H200, settled

NEAR, PACKED = 0.01, 0.05
"""Relative error of dense and of quantized weights."""
FAR = {
    ("Qwen3-0.6B", "shapes=padded"): (0.010, 0.020),
    ("bert-base-uncased", "quantization=bnb-nf4"): (-0.09, -0.07),
}
"""Arms that are predicted less well, and between which errors: one that got better should leave the list."""


class Row(NamedTuple):
    """An arm of the tables: 64 tokens of prompt, and the allocator's peak as torch gave it."""

    model: str
    arm: str
    new: int
    peak_mib: int


def rows() -> Iterator[Row]:
    text = (ROOT / "MEASUREMENTS.md").read_text()
    section = text.split("\n### Every choice on one GPU\n")[1].split("\n### ")[0]
    for part in re.split(r"^(?=\w+ pass, )", section, flags=re.MULTILINE)[1:]:
        found = re.match(r"\w+ pass, (\d+) new tokens", part)
        assert found
        for line in part.splitlines():
            cells = re.match(r"\| ([\w.-]+) \| `([^`]*)`[^|]*\| [\d.]+ \| [\d.]+ \| ([\d,]+) \|", line)
            if cells:
                yield Row(cells[1], cells[2], int(found[1]), int(cells[3].replace(",", "")))


ROWS = sorted(set(rows()))


def test_the_tables_are_read_as_a_whole() -> None:
    assert len(ROWS) > 75
    assert {row.model for row in ROWS} >= {"Qwen3-0.6B", "Llama-3-8B", "Mistral-7B-v0.1", "gpt-oss-20b", "pocket"}
    assert {(row.model, row.arm) for row in ROWS} >= FAR.keys()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.model}-{row.arm}-{row.new}")
def test_the_allocators_peak_was_foreseen(row: Row) -> None:
    facts = resolve(row.model if row.model == "pocket" else f"random:{row.model}")
    work = Workload(prompt_tokens=64, max_new_tokens=row.new)
    checked = settled(facts, dict(parse_arm(facts.model, row.arm).choices), H200, work)
    assert not checked.blocked
    error = checked.memory.tensors / (row.peak_mib * MIB) - 1
    low, high = FAR.get((row.model, row.arm), (-PACKED, PACKED) if "quantization" in row.arm else (-NEAR, NEAR))
    rounding = 1.1 / row.peak_mib  # the tables show whole MiB
    assert low - rounding < error < high + rounding, f"{error:+.2%}"
