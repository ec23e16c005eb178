"""The fit finds the constants that generated its input; collecting the input also runs on a CPU."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.test_predict import PAIRS, collect
from tests.support.machines import H200
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.config import Workload
from tokendyno.backend.models import resolve
from tokendyno.backend.predict import memory
from tools.bench.gpu import fit_memory
from tools.bench.gpu.bench_cli import Pair

MIB = 1 << 20
CONTEXT, PLAN, RESERVED, SHARE = 555 * MIB, 90 << 10, 30 * MIB, 0.01
ADDS = {
    "cudnn": 33 * MIB,
    "experts": 77 * MIB,
    "compile": 12 * MIB,
    "graph": 40 * MIB,
    "torchao": 8 * MIB,
    "bnb": 25 * MIB,
}
NVML = "GPU memory of the worker (NVML)"


def arm(name: str, tensors_mib: int, new: int = 64, experts: int = 0, **effective: str) -> dict[str, Any]:
    """An arm whose memory follows from the constants above."""
    found = {"dtype": "bfloat16", "attention": "sdpa", "cache": "dynamic", "compile": "off", "cuda_graphs": "off"}
    found |= {"quantization": "none"} | effective
    planned = found["cache"] == "dynamic" and found["dtype"] == "bfloat16" and found["attention"] == "sdpa"
    allocated = tensors_mib * MIB
    reserved = round(allocated * (1 + SHARE)) + RESERVED
    beside = CONTEXT + (PLAN * new + ADDS["cudnn"]) * planned + ADDS["experts"] * bool(experts)
    beside += ADDS["compile"] * (found["compile"] != "off") + ADDS["graph"] * (found["cuda_graphs"] != "off")
    beside += ADDS.get(found["quantization"].split("-")[0], 0)
    return {
        "name": name,
        "effective": found,
        "label": NVML,
        "capability": [9, 0],
        "experts": experts,
        "windowed_only": 0,
        "new": new,
        "allocated": allocated,
        "reserved": reserved,
        "process": reserved + beside,
        "tensors": allocated,
        "total": allocated + 690 * MIB,
    }


ARMS = [
    arm("small", 60, experts=8, attention="eager"),
    arm("small static", 50, experts=8, attention="eager", cache="static", dtype="float32"),
    arm("long", 1300, new=400),
    arm("short", 1300),
    arm("eager", 1300, attention="eager"),
    arm("compiled", 1300, cache="static", compile="default"),
    arm("captured", 1300, cache="static", cuda_graphs="manual"),
    arm("large", 15_000),
    arm("int8", 8_600, quantization="torchao-int8"),
]


def test_the_constants_that_made_the_arms_are_found() -> None:
    found = fit_memory.fit(ARMS)
    assert found.context == pytest.approx(CONTEXT, rel=1e-4)
    assert found.features["plans"] == pytest.approx(PLAN, rel=1e-3)
    assert found.reserved_bytes == pytest.approx(RESERVED, rel=1e-3)
    assert found.reserved_share == pytest.approx(SHARE, rel=1e-3)
    for name in ("cudnn", "experts", "compile", "graph", "torchao"):
        assert found.features[name] == pytest.approx(ADDS[name], rel=1e-3), name
    assert max(abs(found.error_percent(arm)) for arm in ARMS) < 0.01
    assert max(abs(fit_memory.above(arm, arm["total"])) for arm in ARMS) > 1


def test_what_was_not_measured_is_told_and_left_out() -> None:
    strange = arm("strange", 9) | {"label": "GPU memory in use on the whole device (NVML)", "process": 10**12}
    said = fit_memory.tell({"arms": [*ARMS, strange]})
    assert any(text.startswith("arm strange left out") for text in said)
    assert f"CONTEXT_BYTES = {CONTEXT // MIB} * MIB  # now {memory.CONTEXT_BYTES // MIB}" in said
    with pytest.raises(ValueError, match="No arm"):
        fit_memory.fit([strange])


def test_no_answer_is_negative() -> None:
    assert fit_memory.not_negative([[1, 1, 1], [0, 1, 2]], [3, 2, 1]) == pytest.approx([2, 0], abs=1e-6)
    assert fit_memory.not_negative([[1, 1], [0, 0]], [5, 5]) == pytest.approx([5, 0])


@pytest.mark.parametrize("pair", PAIRS.values(), ids=list(PAIRS))
def test_every_arm_that_is_measured_runs_as_asked_on_an_h200(pair: Pair) -> None:
    work = Workload(prompt_tokens=pair.prompt, max_new_tokens=pair.new)
    facts = resolve(pair.model)
    for text in (pair.a, pair.b):
        asked = parse_arm(pair.model, text)
        found = check(asked, facts, H200, work)
        assert found.blocked == (), text
        assert {axis: found.planned[axis] for axis, _ in asked.choices} == dict(asked.choices)


def test_the_arms_have_every_feature_that_is_fitted() -> None:
    """By request: what was in effect is only known after the run."""
    asked = [
        {"effective": dict(parse_arm(pair.model, text).choices), "capability": [9, 0], "windowed_only": 0}
        | {"experts": resolve(pair.model).experts, "new": pair.new}
        for pair in PAIRS.values()
        for text in (pair.a, pair.b)
    ]
    used = [fit_memory.features(arm) for arm in asked]
    for name in set(used[0]) - {"plans", "cudnn"}:
        assert {row[name] for row in used} == {0, 1}, name


@pytest.mark.full
def test_on_a_cpu_it_is_collected_too_but_cannot_be_fitted(tmp_path: Path) -> None:
    out = tmp_path / "memory.json"
    pairs = {"ok": Pair("pocket", "cache=static", "", 16, 8), "not": Pair("pocket", "cache=none-such", "", 16, 8)}
    collect(out, pairs)
    found = json.loads(out.read_text())
    assert [row["effective"]["cache"] for row in found["arms"]] == ["static", "dynamic"]
    assert all(row["process"] > 300 * MIB and row["total"] and row["weights"]["error"] == 0 for row in found["arms"])
    assert set(found["missing"]) == {"not"} and "none-such" in found["missing"]["not"]
    with pytest.raises(ValueError, match="No arm"):
        fit_memory.tell(found)
    collect(out, pairs, last_start_s=-1)
    found = json.loads(out.read_text())
    assert set(found["missing"]) == {"ok", "not"} and found["arms"] == []
