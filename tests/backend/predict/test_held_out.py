"""Peaks of arms that nothing was fitted to, measured on one H200 (lab/measurements.md: Every choice on one GPU)."""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.machines import H200, settled
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.config import Workload
from tokendyno.backend.models import resolve
from tokendyno.backend.predict.memory import MIB

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


LINES = (Path(__file__).with_name("held_out.tsv")).read_text(encoding="utf-8").splitlines()[1:]
ROWS = [Row(model, arm, int(new), int(peak)) for model, arm, new, peak in (line.split("\t") for line in LINES)]


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
