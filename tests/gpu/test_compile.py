"""torch.compile and CUDA graphs on a GPU: every mode and kind of graph, proved, with cold compile seconds."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.ledger import SOUND
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.config import Workload
from tokendyno.backend.engine.bench import Bench
from tools.bench.gpu.bench_cli import bench as command_line
from tools.bench.gpu.bench_cli import tell
from tools.bench.gpu.every import perform

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]

MODEL, WHOLE = "random:Qwen3-0.6B", "compile=reduce-overhead,cache=static"
"""A model, and the arm that runs all of its layers, whose cold seconds are those of real models."""
OWN = "loop=own,cache=static,cuda_graphs=manual"
ARMS = {
    "compile=default,cache=static": "off",
    "compile=reduce-overhead,cache=static": "compile",
    "compile=max-autotune,cache=static": "compile",
    "compile=max-autotune-no-cudagraphs,cache=static": "off",
    "compile=default,cache=static,shapes=dynamic": "off",
    "compile=default,cache=static,cuda_graphs=off": "off",
    "compile=reduce-overhead,cache=static,cuda_graphs=compile": "compile",
    "compile=reduce-overhead,cache=static,loop=own": "compile",
    OWN: "manual",
    f"{OWN},compile=default": "manual",
    f"{OWN},compile=max-autotune-no-cudagraphs": "manual",
}
"""Arm -> who recorded the CUDA graphs that it replays."""


def run(bench: Bench, arm: str, model: str, tokens: int = 200) -> dict[str, Any]:
    work = Workload(prompt_tokens=64, max_new_tokens=tokens, ignore_eos=True)
    ended, document = perform(bench, model, dict(parse_arm(model, arm).choices), work)
    assert ended.status == "done", ended.message
    tell(document)
    (only,) = document["arms"]
    found: dict[str, Any] = only
    return found


def run_cold(name: str, arm: str, model: str, tokens: int) -> Any:
    """What an arm compiled in a process that was started for it, with the environment of now."""
    document = command_line(
        name, f"run --model {model} --arm {arm} --prompt-tokens 64 --max-new-tokens {tokens} --ignore-eos"
    )
    tell(document)
    return document["arms"][0]["compile"]


def settings(arm: str) -> dict[str, str]:
    return dict(part.split("=") for part in arm.split(","))


@pytest.mark.parametrize("arm", ARMS)
def test_the_mode_is_proved_with_its_cold_seconds_and_nothing_compiles_while_it_is_measured(
    bench: Bench, few_layers: str, arm: str
) -> None:
    found = run(bench, arm, MODEL if arm == WHOLE else few_layers, tokens=180 if "dynamic" in arm else 200)
    rows = {row["axis"]: row for row in found["evidence"]}
    for row in rows.values():
        assert row["status"] in SOUND, row
    assert rows["cuda_graphs"]["effective"] == ARMS[arm]
    assert rows["compile"]["effective"] == settings(arm).get("compile", "off")
    marks = [mark for mark in found["annotations"] if mark["kind"] in ("compile", "recompile", "graph_skip")]
    assert marks == [], marks
    made = found["compile"]
    if "compile" not in settings(arm):
        assert made is None
        return
    print({name: made[name] for name in ("cold_s", "graphs", "graph_s", "cache_hits", "cache_misses")})
    assert made["graphs"] >= 1 and made["cold_s"] >= max(made["graph_s"])
    assert made["graph_breaks"] == {} and made["cudagraph_skips"] == {}
    assert (made["cudagraph_records"] > 0) is (ARMS[arm] == "compile")


def test_artefacts_make_a_later_worker_warm_up_quicker(
    few_layers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENDYNO_CACHE", str(tmp_path))
    arm = "compile=reduce-overhead,cache=static,compile_cache=artefacts"
    first, second = (run_cold(f"artefacts-{n}", arm, few_layers, 64) for n in (1, 2))
    print({"first": first["cold_s"], "second": second["cold_s"], "bytes": first["artefacts_saved_bytes"]})
    assert first["cache_misses"] > 0 and first["cache_hits"] == 0 and first["artefacts_saved_bytes"] > 0
    assert second["cache_hits"] > 0 and second["cache_misses"] == 0
    assert second["artefacts_loaded_bytes"] == first["artefacts_saved_bytes"]
    assert second["cold_before_s"] == pytest.approx(first["cold_s"])


def test_an_empty_cache_is_cold_and_gone_afterwards(
    few_layers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENDYNO_CACHE", str(tmp_path))
    for n in range(2):
        made = run_cold(f"fresh-{n}", "compile=default,cache=static,compile_cache=fresh", few_layers, 32)
        assert made["cache_hits"] == 0 and made["cache_misses"] > 0
        assert list((tmp_path / "scratch").iterdir()) == []


def test_a_window_that_fills_is_marked_and_compiles_nothing(bench: Bench) -> None:
    """pocket's window of 128 fills during the run; its graphs were compiled in the warm-up."""
    found = run(bench, "compile=reduce-overhead,cache=static", "pocket")
    marks = {mark["kind"]: mark for mark in found["annotations"]}
    assert marks["window"]["token"] == 128 - found["prompt_tokens"]
    assert not {"compile", "recompile", "graph_skip"} & set(marks), marks
    assert found["compile"]["graphs"] == 3


def test_a_replayed_step_takes_few_launches_and_the_row_says_how_many(bench: Bench, few_layers: str) -> None:
    launches = {}
    for arm in ("cache=static", WHOLE):
        found = run(bench, arm, few_layers)
        (row,) = (row for row in found["evidence"] if row["axis"] == "compile")
        told = re.search(r"([\d,]+) launches by the host", row["proof"])
        launches[arm] = int(told[1].replace(",", "")) if told else 0
    assert 0 < launches[WHOLE] < launches["cache=static"] / 4


@pytest.mark.parametrize("values", ["fullgraph=true", "backend=aot_eager", "backend=eager"])
def test_values_of_the_default_mode_are_in_effect(bench: Bench, few_layers: str, values: str) -> None:
    found = run(bench, f"cache=static,compile=default:{values}", few_layers)
    rows = {row["axis"]: row for row in found["evidence"]}
    assert rows["compile"]["status"] == "verified", rows["compile"]
