"""Each limit of a mode at its edge: what is just inside is accepted, what is just outside is refused in a sentence."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.machines import CPU, H200
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import ArmRequest, Request, Workload, workload_of
from tokendyno.backend.engine.allowed import check_allowed, check_model, hub_kernels
from tokendyno.backend.engine.worker_memory import worker_limit
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors import open_bench
from tokendyno.backend.hardware import Machine
from tokendyno.backend.hosting.limits import GIB, LIMITS, Limits
from tokendyno.backend.models import resolve
from tokendyno.backend.traffic.requests import Traffic, TrafficRequest

PUBLIC = LIMITS["public"]
GPT_OSS = "gpt-oss-20b"


def held(request: Request, limits: Limits = PUBLIC, machine: Machine = CPU) -> None:
    """Hold a request against limits, as the bench does."""
    facts = resolve(request.model)
    arms = {
        arm.name: check(make_config(request.model, arm.choices), facts, machine, request.workload, 0, request.traffic)
        for arm in request.arms
    }
    check_allowed(request, facts, arms, machine, limits)


def test_where_nothing_is_run_a_run_is_refused_with_what_to_do(tmp_path: Path) -> None:
    bench = open_bench(tmp_path / "history.sqlite", limits=LIMITS["show"])
    try:
        with pytest.raises(InputError, match=r"only shows recordings .* start it with: tokendyno open\.$"):
            bench.submit(asked())
        assert not bench.check(asked())["A"].blocked  # what would run is still said
    finally:
        bench.close()


def asked(*arms: dict[str, str], model: str = "pocket", **work: Any) -> Request:
    named = [ArmRequest(name, choices) for name, choices in zip("AB", arms or ({},), strict=False)]
    return Request(model, named, Workload(**{"prompt": "Once", "max_new_tokens": 8, **work}))


@pytest.mark.parametrize(
    ("limits", "inside", "outside", "says"),
    [
        ({"prompt_bytes": 100}, {"prompt": "é" * 50}, {"prompt": "é" * 50 + "x"}, "101 bytes of prompts"),
        ({"prompt_tokens": 64}, {"prompt_tokens": 64}, {"prompt_tokens": 65}, "65 tokens of a prompt"),
        ({"new_tokens": 64}, {"max_new_tokens": 64}, {"max_new_tokens": 65}, "65 new tokens of a sequence"),
        ({"batch_size": 4}, {"batch_size": 4}, {"batch_size": 5}, "5 sequences in a batch"),
        ({"repeats": 3}, {"repeats": 3}, {"repeats": 4}, "4 repeats"),
        (
            {"run_tokens": 2 * 3 * 2 * 18},
            {"prompt_tokens": 10, "max_new_tokens": 8, "repeats": 3, "batch_size": 2},
            {"prompt_tokens": 10, "max_new_tokens": 9, "repeats": 3, "batch_size": 2},
            "228 tokens of a run",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_length_at_its_edge(
    limits: dict[str, Any], inside: dict[str, Any], outside: dict[str, Any], says: str
) -> None:
    only = replace(Limits("public"), **limits)
    held(asked({}, {}, **inside), only)
    with pytest.raises(InputError, match=rf"^{says}.* over the limit of .*\.$"):
        held(asked({}, {}, **outside), only)


def test_many_requests_are_held_against_the_same_limits() -> None:
    def batch(count: int, output: int) -> Request:
        traffic = Traffic([TrafficRequest(0.0, output, prompt_tokens=10)] * count)
        return Request("pocket", [ArmRequest("A", {"batching": "static"})], workload_of(traffic), traffic)

    only = Limits("public", new_tokens=20, run_tokens=120)
    held(batch(4, 20), only)
    with pytest.raises(InputError, match="21 new tokens"):
        held(batch(3, 21), only)
    with pytest.raises(InputError, match="150 tokens of a run"):
        held(batch(5, 20), only)


def test_the_weights_of_a_model_at_the_limit() -> None:
    facts = resolve("random:gpt2")
    weights = check(make_config("random:gpt2", {}), facts, CPU, Workload(prompt="x")).memory.weights
    held(asked(model="random:gpt2"), Limits("public", model_bytes=weights))
    with pytest.raises(InputError, match=r"of weights, over the limit of .* Choose a smaller model"):
        held(asked(model="random:gpt2"), Limits("public", model_bytes=weights - 1))


def test_the_predicted_memory_at_the_limit_of_a_worker() -> None:
    request = asked(model="random:gpt2")
    needed = check(make_config("random:gpt2", {}), resolve("random:gpt2"), CPU, request.workload).needed_bytes
    held(request, Limits("public", worker_bytes=2 * needed))
    with pytest.raises(
        InputError, match=r"of memory as predicted, over the limit of .* smaller model, batch or length"
    ):
        held(request, Limits("public", worker_bytes=needed))
    held(request, Limits("public", worker_bytes=needed), H200)  # the model lies on the GPU


def test_a_worker_may_hold_no_more_than_a_share_of_the_machine() -> None:
    small = replace(CPU, memory_bytes=8 * GIB)
    assert [worker_limit(PUBLIC, machine) for machine in (CPU, small)] == [16 * GIB, 6 * GIB]
    assert worker_limit(LIMITS["local"], small) is None


def test_a_list_of_models_is_all_there_is_by_name_hub_id_and_with_random_weights() -> None:
    limits = Limits("public", models=("pocket", "gpt2", "some/model"))
    for name in (
        "pocket",
        "POCKET",
        "random:pocket",
        "forward:random:pocket",
        "Forward:Random:pocket",
        "gpt2",
        "openai-community/gpt2",
        "some/model",
    ):
        check_model(name, limits)
    for name in ("Qwen3-0.6B", "some/other", "some/model@main", "/etc", "random:Qwen3-0.6B", "forward:Qwen3-0.6B", ""):
        with pytest.raises(InputError, match="Choose one of: pocket, gpt2, some/model"):
            check_model(name, limits)
    check_model("some/other", Limits("public"))


def test_kernels_of_the_hub_are_off_unless_listed() -> None:
    attention = {"attention": "kernels-community/vllm-flash-attn3"}
    for choices in (attention, {"kernels": "hub"}):
        with pytest.raises(InputError, match=r"kernels from the Hub \(kernels-community/.*binaries"):
            held(asked(choices, model="random:Qwen3-0.6B"), Limits("public", hub_kernels=False), H200)
        held(asked(choices, model="random:Qwen3-0.6B"), Limits("team"), H200)
    listed = Limits("public", hub_kernels=False, kernels=("kernels-community/vllm-flash-attn3",))
    held(asked(attention, model="random:Qwen3-0.6B"), listed, H200)
    held(asked({"kernels": "local"}, model="random:Qwen3-0.6B"), Limits("public", hub_kernels=False), H200)


def test_weights_in_mxfp4_need_a_kernel_of_the_hub() -> None:
    facts = resolve(GPT_OSS)
    checked = check(make_config(GPT_OSS, {}), facts, H200, Workload(prompt="x"))
    assert hub_kernels(checked, facts, H200) == {"kernels-community/gpt-oss-triton-kernels"}
    assert hub_kernels(check(make_config(GPT_OSS, {}), facts, CPU, Workload(prompt="x")), facts, CPU) == set()


def test_only_models_that_a_mode_would_run_are_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)  # which would leave those that lie here
    for limits, some, none in (
        (LIMITS["local"], {"pocket", "Llama-3-70B", "Gemma-3-1b"}, set()),
        (PUBLIC, {"pocket", "bert-base-uncased"}, {"Llama-3-8B", GPT_OSS}),
        (replace(PUBLIC, models=("gpt2",)), {"gpt2"}, {"pocket", "SmolLM2-135M-Instruct"}),
    ):
        bench = open_bench(tmp_path / f"{limits.mode}{len(limits.models)}.sqlite", None, limits, "subprocess")
        names = {entry.name for entry in bench.offered}
        bench.close()
        assert some <= names and not none & names
