"""On a GPU too the peak memory of a run is its own: first, third, and after twenty others."""

import pytest

from tokendyno.backend.config import Workload
from tokendyno.backend.engine.bench import Bench
from tools.bench.gpu.every import perform

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(900)]

MODEL, KEPT = "random:Qwen3-0.6B", "random:Llama-3-8B"
WORK = Workload(prompt_tokens=64, max_new_tokens=64)
LONG = Workload(prompt_tokens=3_000, max_new_tokens=32)
ARMS: tuple[dict[str, str], ...] = (
    {},
    {"attention": "eager"},
    {"cache": "static"},
    {"cache": "static", "loop": "own", "cuda_graphs": "manual"},
)
PROBES = ARMS[1:3]
LENGTHS = ((16, 32), (64, 150), (500, 16), (2_000, 16), (4_000, 16))
TOLERANCE = 0.03


def peak(bench: Bench, choices: dict[str, str], work: Workload = WORK, model: str = MODEL) -> float:
    run, document = perform(bench, model, choices, work)
    assert run.status == "done", run.message
    (arm,) = document["arms"]
    found, extra = float(arm["summary"]["peak_memory_bytes"]), arm["extra"]
    told = {name: round(extra[name] / (1 << 20)) for name in extra if name.endswith("_bytes") and extra[name]}
    begun = run.arms["A"].phases.get("start")  # none where the worker was kept
    worker = "kept" if begun is None else begun.note or "new"
    print(choices, work.prompt_tokens, work.max_new_tokens, round(found / (1 << 20)), told, worker, flush=True)
    return found


@pytest.mark.parametrize("choices", PROBES, ids=str)
def test_an_arm_has_the_same_peak_first_and_after_a_longer_prompt(bench: Bench, choices: dict[str, str]) -> None:
    first = peak(bench, choices)
    assert peak(bench, choices, LONG) > 1.1 * first, "the longer run leaves nothing that could be seen"
    assert peak(bench, choices) == pytest.approx(first, rel=TOLERANCE)


def test_a_worker_of_a_large_model_is_kept_and_its_third_peak_is_its_first(bench: Bench) -> None:
    first = peak(bench, {"attention": "eager"}, model=KEPT)
    peak(bench, {"attention": "eager"}, LONG, KEPT)
    assert peak(bench, {"attention": "eager"}, model=KEPT) == pytest.approx(first, rel=TOLERANCE)


def test_arms_have_the_same_peaks_after_twenty_others(bench: Bench, few_layers: str) -> None:
    first = [peak(bench, choices, model=few_layers) for choices in PROBES]
    for other in ARMS:
        for prompt_tokens, new in LENGTHS:
            peak(bench, other, Workload(prompt_tokens=prompt_tokens, max_new_tokens=new), few_layers)
    assert [peak(bench, choices, model=few_layers) for choices in PROBES] == pytest.approx(first, rel=TOLERANCE)
