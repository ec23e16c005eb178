"""The parts of a step on a real GPU: they add up, agree with the busy time, and captured graphs leave no host time."""

from typing import Any

import pytest

from tools.bench.gpu.bench_cli import bench

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

MODEL = "random:Qwen3-0.6B"


@pytest.fixture(scope="module")
def arms() -> dict[str, Any]:
    found = bench(
        "step",
        f"compare --model {MODEL} --a attention=eager --b cache=static,loop=own,cuda_graphs=manual "
        "--prompt-tokens 64 --max-new-tokens 200 --repeats 1",
    )
    for arm in found["arms"]:
        print(arm["name"], arm["step_time"], arm["extra"].get("step_busy_s"))
    return {arm["name"]: arm for arm in found["arms"]}


@pytest.mark.parametrize("name", ["A", "B"])
def test_the_parts_add_up_and_agree_with_the_busy_time_of_another_profile(arms: dict[str, Any], name: str) -> None:
    step, busy_s = arms[name]["step_time"], arms[name]["extra"]["step_busy_s"]
    assert step["gpu"] and step["steps"] == 3 and sum(step["parts_s"].values()) == pytest.approx(step["seconds"])
    busy = sum(step["parts_s"][part] for part in ("attention", "products", "other"))
    assert busy == pytest.approx(busy_s, rel=0.15)
    assert step["parts_s"]["products"] > 0.5 * step["weight_bytes"] / step["bytes_per_s"]
    assert step["parts_s"].get("collectives", 0) == 0


def test_eager_attention_is_told_from_the_projections_by_the_operators_that_launch_it(arms: dict[str, Any]) -> None:
    parts = arms["A"]["step_time"]["parts_s"]
    assert 0 < parts["attention"] < parts["products"]


def test_one_step_at_a_time_waits_for_the_host_and_a_captured_graph_hardly_does(arms: dict[str, Any]) -> None:
    eager, captured = (arms[name]["step_time"] for name in "AB")
    assert eager["parts_s"]["host"] > 0.4 * eager["seconds"]
    assert captured["parts_s"]["host"] < 0.25 * captured["seconds"]
    assert captured["parts_s"]["attention"] > 0 < captured["parts_s"]["gaps"]
