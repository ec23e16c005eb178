"""On a GPU a run's latency is its own: the profiler of an earlier proof in the same worker no longer listens."""

import statistics

import pytest

from tokendyno.backend.config import Workload
from tokendyno.backend.engine.bench import Bench
from tools.bench.gpu.every import perform

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

WORK = Workload(prompt_tokens=32, max_new_tokens=64)
ARMS: tuple[dict[str, str], ...] = (
    {},
    {"cache": "static", "loop": "own", "cuda_graphs": "manual"},
    {"cache": "static", "compile": "reduce-overhead"},
)
RUNS = 3


@pytest.mark.parametrize("choices", ARMS, ids=str)
def test_a_run_after_a_proof_is_as_fast_as_one_before_and_its_proof_sees_as_much(
    bench: Bench, choices: dict[str, str]
) -> None:
    """In one worker. With the profiler attached a run of the first arm took a quarter longer (lab/measurements). Graphs
    are captured before the first proof and replayed after each."""
    arms, ids = [], []
    for number in range(RUNS):
        run, document = perform(bench, "random:Qwen3-0.6B", choices, WORK)
        assert run.status == "done", run.message
        assert number == 0 or "start" not in run.arms["A"].phases, "a new worker"
        (arm,) = document["arms"]
        print(choices, number, arm["summary"]["latency_median_s"], arm["extra"].get("step_busy_s"), arm["step_time"])
        arms.append(arm)
        ids.append(run.arms["A"].ids)
    first, *later = arms
    assert [arm["extra"]["profiler_attached"] for arm in arms] == [0] * RUNS
    after = statistics.median(arm["summary"]["latency_median_s"] for arm in later)
    assert after < 1.1 * first["summary"]["latency_median_s"]
    for arm in later:
        assert arm["step_time"]["parts_s"].keys() == first["step_time"]["parts_s"].keys()
        assert arm["extra"]["step_busy_s"] == pytest.approx(first["extra"]["step_busy_s"], rel=0.1)
        assert [row["status"] for row in arm["evidence"]] == [row["status"] for row in first["evidence"]]
    assert ids == [ids[0]] * RUNS
