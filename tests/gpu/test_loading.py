"""The choices of `loading` on a GPU, from files: distinguished by bytes, with their seconds and peaks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tokendyno.backend.config import Workload
from tokendyno.backend.executors import open_bench
from tokendyno.backend.executors.checkpoint import written
from tools.bench.gpu.every import perform

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

WORK = Workload("Once", max_new_tokens=8, ignore_eos=True)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A checkpoint in Qwen3-0.6B's shape: 1.2 GB of random weights in bf16."""
    with written("random:Qwen3-0.6B") as path:
        yield path


@pytest.fixture(scope="module")
def arms(folder: Path) -> Any:
    """The arm of each choice, in its own process, after a discarded run that reads the files for the first time."""
    found: dict[str, Any] = {}
    bench = open_bench()
    bench.start()
    try:
        for way in ("device_map", "device_map", "no-warmup", "plain"):
            run, document = perform(bench, str(folder), {} if way == "device_map" else {"loading": way}, WORK)
            assert run.status == "done", run.message
            (found[way],) = document["arms"]
            bench.pool.drop("A")
            print(way, found[way]["load"], {k: v for k, v in found[way]["extra"].items() if k.startswith("load_")})
    finally:
        bench.close()
    return found


@pytest.mark.parametrize("way", ["device_map", "no-warmup", "plain"])
def test_each_way_is_proved(way: str, arms: dict[str, Any]) -> None:
    row = next(row for row in arms[way]["evidence"] if row["axis"] == "loading")
    assert (row["planned"], row["effective"], row["status"]) == (way, way, "verified"), row
    load = arms[way]["load"]
    assert {"host", "device"} == set(load["peak_bytes"])
    assert {"context", "tokenizer", "read"} <= set(load["stages_s"])
    assert ("move" in load["stages_s"]) is (way == "plain")
    assert ("warm_up" in load["stages_s"]) is (way == "device_map")


def test_the_warm_up_reserves_the_weights_in_one_piece(arms: dict[str, Any]) -> None:
    weights = arms["device_map"]["weight_bytes"]
    assert arms["device_map"]["extra"]["load_warmup_bytes"] == pytest.approx(weights, rel=0.05)
    assert arms["no-warmup"]["extra"]["load_warmup_bytes"] == 0
    assert arms["plain"]["extra"]["load_moved_bytes"] == pytest.approx(weights, rel=0.01)
    for arm in arms.values():
        assert arm["load"]["peak_bytes"]["device"] >= weights


def test_all_ways_load_the_same_model(arms: dict[str, Any]) -> None:
    assert len({tuple(arm["token_ids"]) for arm in arms.values()}) == 1
