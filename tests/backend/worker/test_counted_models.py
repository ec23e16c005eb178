"""Tiny random models of architectures outside the table, run by a worker: what it measures is what was counted."""

import json
from pathlib import Path

import pytest

from tests.support.counted_models import COUNTED
from tests.support.worker import request
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.models import resolve
from tokendyno.backend.plan import DYNAMIC
from tokendyno.backend.predict.kv import kv_bytes
from tokendyno.backend.predict.weights import itemsize, weight_bytes

IN_CI = ("multi-query", "chunks", "experts by token", "attention and a state", "an encoder")
"""One a way of counting; the others are variants of these, for the full tier."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name if name in IN_CI else pytest.param(name, marks=pytest.mark.full) for name in COUNTED]
)
def test_a_run_measures_what_was_counted_and_nothing_fails(name: str, warm_bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(COUNTED[name]))
    model = f"random:{tmp_path}"
    run = warm_bench.wait(
        warm_bench.submit(request({}, model=model, prompt_tokens=20, max_new_tokens=12, ignore_eos=True)), 300
    )
    assert run.status == "done", run.message
    arm, facts = run.arms["A"], resolve(model)
    assert arm.loaded and arm.loaded.weight_bytes == weight_bytes(facts) and arm.loaded.parameters == facts.parameters
    if facts.kind == "decoder":
        measured = [sliding + full for sliding, full in zip(arm.kv_sliding, arm.kv_full, strict=True)]
        lengths = range(20, 20 + len(measured))
        assert measured == [kv_bytes(facts, DYNAMIC, length, 1, itemsize(facts)).total for length in lengths]
        assert arm.predicted_kv_bytes() == measured[-1]
    assert not [row for row in run.ledger("A") if row.status == "failed"]
