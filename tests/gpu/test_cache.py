"""Caches, draft tokens and padded lengths on a GPU: the same text, the predicted bytes, on the right device."""

import re
from typing import Any

import pytest

from tests.support.ledger import SOUND
from tokendyno.backend.config import Workload
from tokendyno.backend.engine.bench import Bench
from tools.bench.gpu.every import perform

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

FULL = "random:Qwen3-0.6B"
STORY = Workload(
    "Once upon a time, there was a little fox named Pip. One day, Pip", max_new_tokens=200, ignore_eos=True
)
LONG = Workload(prompt_tokens=8_000, max_new_tokens=24)


def arm(bench: Bench, model: str, work: Workload, **choices: str) -> dict[str, Any]:
    """The document of the only arm of a run that must succeed, with every ledger row green."""
    run, document = perform(bench, model, choices, work)
    assert run.status == "done", run.message
    only: dict[str, Any] = document["arms"][0]
    for row in only["evidence"]:
        assert row["status"] in SOUND, row
    print(choices, {k: v for k, v in only["extra"].items() if k.startswith(("kv_", "allocator"))}, only["load"])
    return only


@pytest.fixture(scope="module")
def story(bench: Bench) -> list[int]:
    ids: list[int] = arm(bench, "pocket", STORY, dtype="float32")["token_ids"]
    return ids


@pytest.mark.parametrize(
    "choices",
    [
        {"cache": "offloaded"},
        {"cache": "offloaded_static"},
        {"speculation": "prompt-lookup"},
        {"shapes": "buckets"},
        {"shapes": "padded", "cache": "static"},
        {"shapes": "dynamic", "cache": "static", "compile": "default"},
    ],
    ids=lambda choices: ",".join(f"{axis}={choice}" for axis, choice in choices.items()),
)
def test_greedy_text_stays_the_same(choices: dict[str, str], bench: Bench, story: list[int]) -> None:
    """In float32, where rounding does not change the most likely token; past pocket's window of 128."""
    found = arm(bench, "pocket", STORY, dtype="float32", **choices)
    assert found["token_ids"] == story
    assert found["kv_bytes"] == found["kv_bytes_predicted"]


@pytest.mark.parametrize(
    ("kind", "package"),
    [("quantized-fp8", "torch"), ("quantized-hqq4", "hqq"), ("quantized-quanto4", "optimum.quanto")],
)
def test_quantized_bytes_are_as_predicted_on_the_gpu(kind: str, package: str, bench: Bench) -> None:
    pytest.importorskip(package)
    found = arm(bench, FULL, Workload(prompt_tokens=100, max_new_tokens=160), cache=kind)
    assert found["kv_bytes"] == found["kv_bytes_predicted"]


@pytest.mark.parametrize("kernels", ["off", "local"])
def test_a_static_cache_in_8_bits_has_the_predicted_bytes_in_captured_steps(kernels: str, bench: Bench) -> None:
    """Read by the bundled kernels, and dequantized for the model's own attention."""
    how = {"loop": "own", "projections": "fused", "cuda_graphs": "manual", "kernels": kernels}
    found = arm(bench, FULL, Workload(prompt_tokens=100, max_new_tokens=60), cache="static-fp8", **how)
    assert found["kv_bytes"] == found["kv_bytes_predicted"]


def bytes_in_host_memory(arm: dict[str, Any]) -> int:
    """Of the cache, as its row of the ledger says."""
    proof = next(row["proof"] for row in arm["evidence"] if row["axis"] == "cache")
    told = re.search(r"([\d,]+) of them in pinned host memory", proof)
    return int(told[1].replace(",", "")) if told else 0


def test_an_offloaded_cache_leaves_the_gpu_all_but_two_layers(bench: Bench) -> None:
    near, away = arm(bench, FULL, LONG), arm(bench, FULL, LONG, cache="offloaded")
    whole, in_host = near["kv_bytes"]["full"][-1], bytes_in_host_memory(away)
    assert in_host >= 26 * whole / 28  # layers of Qwen3-0.6B
    assert near["extra"]["allocator_peak_bytes"] - away["extra"]["allocator_peak_bytes"] > whole / 2


def test_an_offloaded_static_cache_keeps_its_windows_on_the_gpu(bench: Bench) -> None:
    work = Workload(prompt_tokens=1_000, max_new_tokens=24)
    found = arm(bench, "pocket", work, cache="offloaded_static")
    sliding, full = (found["kv_bytes"][kind][-1] for kind in ("sliding", "full"))
    assert sliding <= sliding + full - bytes_in_host_memory(found) <= sliding + full / 2  # 1 or 2 of 4 layers


def test_flex_attention_takes_padding_on_a_gpu(bench: Bench, story: list[int]) -> None:
    """Allowed here; a rule forbids it on a CPU."""
    plain = arm(bench, FULL, STORY, dtype="float32", attention="flex_attention")
    padded = arm(bench, FULL, STORY, dtype="float32", attention="flex_attention", shapes="buckets")
    assert padded["token_ids"][:20] == plain["token_ids"][:20]


def test_symbolic_sizes_compile_once_for_two_lengths(bench: Bench) -> None:
    """The second length uses the graph of the first: its warm-up compiles nothing."""
    choices = {"cache": "static", "compile": "default", "shapes": "dynamic"}
    first = arm(bench, FULL, Workload(prompt_tokens=100, max_new_tokens=28), **choices)  # 128 places, as a head is wide
    again = arm(bench, FULL, Workload(prompt_tokens=100, max_new_tokens=100), **choices)
    assert again["extra"]["graphs"] == first["extra"]["graphs"] > 0
