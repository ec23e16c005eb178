"""On a GPU too the peak memory of a run is its own: first, third, and after twenty others."""

from collections.abc import Iterator

import pytest

from backend.config import Workload
from backend.engine.bench import Bench
from backend.executors import open_bench
from tools.bench.gpu.every import perform

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]

MODEL = "random:Qwen3-0.6B"
WORK = Workload(prompt_tokens=64, max_new_tokens=64)
ARMS: tuple[dict[str, str], ...] = (
    {},
    {"attention": "eager"},
    {"cache": "static"},
    {"cache": "static", "loop": "own", "cuda_graphs": "manual"},
)
LENGTHS = ((16, 32), (64, 300), (500, 16), (2_000, 16), (4_000, 16))
TOLERANCE = 0.03


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = open_bench()
    made.start(prewarm=2)
    yield made
    made.close()


def peak(bench: Bench, choices: dict[str, str], work: Workload) -> float:
    run, document = perform(bench, MODEL, choices, work)
    assert run.status == "done", run.message
    found = float(document["arms"][0]["summary"]["peak_memory_bytes"])
    print(choices, work.prompt_tokens, work.max_new_tokens, round(found / (1 << 20)), document["arms"][0]["extra"])
    return found


@pytest.mark.parametrize("choices", ARMS[1:3], ids=str)
def test_an_arm_has_the_same_peak_first_third_and_after_twenty_others(bench: Bench, choices: dict[str, str]) -> None:
    first = peak(bench, choices, WORK)
    peak(bench, choices, Workload(prompt_tokens=3_000, max_new_tokens=32))
    assert peak(bench, choices, WORK) == pytest.approx(first, rel=TOLERANCE), "third"
    for other in ARMS:
        for prompt_tokens, new in LENGTHS:
            peak(bench, other, Workload(prompt_tokens=prompt_tokens, max_new_tokens=new))
    assert peak(bench, choices, WORK) == pytest.approx(first, rel=TOLERANCE), "after twenty others"
