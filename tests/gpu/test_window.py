"""The plateau of a sliding-window cache at a real 7B shape, in the cache's bytes and in NVML's process memory."""

import statistics
from typing import Any

import pytest

from tools.bench.gpu.bench_cli import bench, tell

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

WINDOW, PROMPT, NEW = 4096, 3000, 3000


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found = bench(
        "mistral-window",
        "compare --model random:Mistral-7B-v0.1 --a cache=dynamic --b cache=unwindowed "
        f"--prompt-tokens {PROMPT} --max-new-tokens {NEW} --repeats 1",
    )
    tell(found)
    return found


def test_bytes_stop_growing_at_the_window_in_a_and_go_on_in_b(document: dict[str, Any]) -> None:
    a, b = (arm["kv_bytes"]["sliding"] for arm in document["arms"])
    filled = WINDOW - 1 - PROMPT
    assert set(a[filled:]) == {a[filled]}
    assert a[:filled] == b[:filled]
    assert b == sorted(b) and b[-1] > 1.4 * a[-1]


def test_bytes_are_as_predicted_from_the_config(document: dict[str, Any]) -> None:
    for arm in document["arms"]:
        assert arm["kv_bytes"] == arm["kv_bytes_predicted"]


def test_nvml_sees_the_plateau_too(document: dict[str, Any]) -> None:
    """Mean process memory over the last 500 tokens against 500 tokens after the window filled."""
    grown = []
    for arm in document["arms"]:
        memory = arm["memory_bytes"]
        filled = WINDOW - PROMPT + 200
        early = statistics.mean(memory[filled : filled + 500])
        late = statistics.mean(memory[-500:])
        grown.append(late - early)
        print(f"arm {arm['name']}: {arm['memory_label']}: {early / 2**20:.1f} -> {late / 2**20:.1f} MiB")
    a, b = grown
    assert abs(a) < 16 << 20
    assert b > 64 << 20
