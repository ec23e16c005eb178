"""torch.compile and CUDA graphs on a GPU: every mode and kind of graph, proved, with cold compile seconds.

`TOKENDYNO_OUT` keeps the documents: cold seconds, graphs and latencies for MEASUREMENTS.md.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.support.ledger import SOUND
from tools.bench.gpu.bench_cli import bench, tell

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]

MODEL = "random:Qwen3-0.6B"
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


def run(name: str, arm: str, model: str = MODEL, tokens: int = 200) -> dict[str, Any]:
    document = bench(
        name, "run", "--model", model, "--arm", arm, "--prompt-tokens", "64", "--max-new-tokens", str(tokens),
        "--ignore-eos",
    )  # fmt: skip
    tell(document)
    (only,) = document["arms"]
    found: dict[str, Any] = only
    return found


def settings(arm: str) -> dict[str, str]:
    return dict(part.split("=") for part in arm.split(","))


@pytest.mark.parametrize("arm", ARMS)
def test_the_mode_is_proved_with_its_cold_seconds_and_nothing_compiles_while_it_is_measured(arm: str) -> None:
    found = run("compile-" + arm.replace("=", "-").replace(",", "_"), arm, tokens=180 if "dynamic" in arm else 200)
    rows = {row["axis"]: row for row in found["evidence"]}
    for row in rows.values():
        assert row["status"] in SOUND, row
    assert rows["cuda_graphs"]["effective"] == ARMS[arm]
    assert rows["compile"]["effective"] == settings(arm).get("compile", "off")
    marks = [mark for mark in found["marks"] if mark["kind"] in ("compile", "recompile", "graph_skip")]
    assert marks == [], marks
    made = found["compile"]
    if "compile" not in settings(arm):
        assert made is None
        return
    print({name: made[name] for name in ("cold_s", "graphs", "graph_s", "cache_hits", "cache_misses")})
    assert made["graphs"] >= 1 and made["cold_s"] >= max(made["graph_s"])
    assert made["graph_breaks"] == {} and made["cudagraph_skips"] == {}
    assert (made["cudagraph_records"] > 0) is (ARMS[arm] == "compile")


def test_artefacts_make_a_later_worker_warm_up_quicker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENDYNO_CACHE", str(tmp_path))
    arm = "compile=reduce-overhead,cache=static,compile_cache=artefacts"
    first, second = (run(f"artefacts-{n}", arm, tokens=64)["compile"] for n in (1, 2))
    print({"first": first["cold_s"], "second": second["cold_s"], "bytes": first["artefacts_saved_bytes"]})
    assert first["cache_misses"] > 0 and first["cache_hits"] == 0 and first["artefacts_saved_bytes"] > 0
    assert second["cache_hits"] > 0 and second["cache_misses"] == 0
    assert second["artefacts_loaded_bytes"] == first["artefacts_saved_bytes"]
    assert second["cold_before_s"] == pytest.approx(first["cold_s"])


def test_an_empty_cache_is_cold_and_gone_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENDYNO_CACHE", str(tmp_path))
    for n in range(2):
        made = run(f"fresh-{n}", "compile=default,cache=static,compile_cache=fresh", tokens=32)["compile"]
        assert made["cache_hits"] == 0 and made["cache_misses"] > 0
        assert list((tmp_path / "scratch").iterdir()) == []


def test_a_window_that_fills_is_marked_and_compiles_nothing() -> None:
    """pocket's window of 128 fills during the run; its graphs were compiled in the warm-up."""
    found = run("pocket-window", "compile=reduce-overhead,cache=static", "pocket")
    marks = {mark["kind"]: mark for mark in found["marks"]}
    assert marks["window"]["token"] == 128 - found["prompt_tokens"]
    assert not {"compile", "recompile", "graph_skip"} & set(marks), marks
    assert found["compile"]["graphs"] == 3
