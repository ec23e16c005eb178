"""Many requests are checked one by one before anything runs, and so are the pages of continuous batching."""

from dataclasses import replace

import pytest

from tests.support.machines import CPU, H200, facts
from tokendyno.backend.arms.check import Checked, check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.arms.requests import of_arm
from tokendyno.backend.config import Workload, workload_of
from tokendyno.backend.traffic import Traffic, TrafficRequest
from tokendyno.backend.traffic.presets import drawn
from tokendyno.backend.traffic.requests import Draw


def checked(traffic: Traffic, model: str = "pocket", **choices: str) -> Checked:
    return check(make_config(model, choices), facts(model), CPU, workload_of(traffic), 0, traffic)


def requests(*lengths: tuple[int, int], pages: int = 0) -> Traffic:
    return Traffic([TrafficRequest(0.0, new, prompt) for prompt, new in lengths], pages=pages)


def reasons(arm: Checked) -> str:
    return " ".join(verdict.reason for verdict in arm.blocked)


def test_each_request_must_fit_and_not_the_longest_prompt_with_the_longest_output() -> None:
    assert not checked(requests((4000, 10), (10, 4000)), batching="static").blocked
    assert "Request 2 has 4,000 prompt tokens and 200 new ones" in reasons(checked(requests((5, 5), (4000, 200))))


def test_a_request_that_needs_more_pages_than_there_are_is_refused_with_the_number_it_needs() -> None:
    arm = checked(requests((100, 60), pages=9), batching="continuous", page_size="16")
    assert "needs 10 pages of 16 tokens, but there are only 9" in reasons(arm)
    assert not checked(requests((100, 60), pages=10), batching="continuous", page_size="16").blocked


def test_more_pages_than_memory_are_refused_with_the_largest_number_that_fits() -> None:
    arm = checked(requests((100, 60), pages=1_000_000), batching="continuous")
    (verdict,) = arm.blocked
    gib = [f"{size / (1 << 30):.1f} GiB" for size in (arm.memory.kv, arm.memory.total, CPU.free_bytes)]
    assert [part for part in gib if part in verdict.reason] == gib, verdict.reason
    most = int(verdict.reason.rpartition("--pages ")[2].rstrip("."))
    assert not checked(requests((100, 60), pages=most), batching="continuous").blocked
    assert checked(requests((100, 60), pages=most + most // 50), batching="continuous").blocked


def test_pages_count_as_the_cache_of_continuous_batching() -> None:
    arm = checked(requests((100, 60), pages=10), batching="continuous", page_size="16", dtype="float32")
    assert arm.memory.kv == 10 * 16 * 8 * 2 * 2 * 32 * 4  # tokens, layers, k and v, KV heads, head size, bytes


@pytest.mark.parametrize(
    ("choices", "named"),
    [
        ({"batching": "continuous", "cache": "static"}, "a KV cache of its own"),
        ({"batching": "continuous", "cache": "quantized-fp8"}, "a KV cache of its own"),
        ({"batching": "continuous", "speculation": "prompt-lookup"}, "it verifies no drafts"),
        ({"batching": "continuous", "loop": "own", "cache": "static"}, "a loop and CUDA graphs of its own"),
        ({"batching": "continuous", "attention": "flex_attention"}, "accepts eager, sdpa, FlashAttention"),
        ({"batching": "continuous", "async_batching": "on"}, "needs CUDA streams"),
        ({"batching": "static", "page_size": "16"}, "Only continuous batching has pages"),
        ({"batching": "continuous", "batch_order": "sorted"}, "Only static batches are formed in an order"),
        ({"batching": "static", "parallel": "tensor-2"}, "Many requests are served by one process"),
    ],
    ids=lambda one: ",".join(one.values()) if isinstance(one, dict) else "",
)
def test_what_cannot_be_together_is_refused_with_a_reason(choices: dict[str, str], named: str) -> None:
    assert named in reasons(checked(requests((8, 8)), **choices))


@pytest.mark.parametrize(
    "choices",
    [
        {"loop": "own", "cache": "static", "cuda_graphs": "manual", "prefill": "captured", "projections": "fused"},
        {"compile": "reduce-overhead", "cache": "static", "shapes": "dynamic", "compile_cache": "fresh"},
    ],
)
def test_the_first_fix_of_each_verdict_pressed_in_turn_leads_to_continuous_batching(choices: dict[str, str]) -> None:
    """Not round in a circle, from a static cache to a growing one and back."""
    model, here = facts("random:Llama-3-8B"), choices | {"batching": "continuous"}
    for _ in range(8):
        arm = check(make_config(model.model, here), model, H200, workload_of(requests((8, 8))), 0, requests((8, 8)))
        if not arm.blocked:
            break
        here |= arm.blocked[0].fix
    assert not arm.blocked and here["batching"] == "continuous"


def test_an_encoder_has_no_requests_to_batch() -> None:
    assert "is an encoder" in reasons(checked(requests((8, 8)), "bert-base-uncased"))


def test_an_arm_may_have_a_batch_size_of_its_own() -> None:
    """Memory follows it, and what a worker is told to serve."""
    model = facts("random:Llama-3-8B")
    traffic = drawn(Draw(20, (100, 200), (100, 200)), 1, 16)
    work = workload_of(traffic)
    sizes = {}
    for size in ("auto", "4", "16", "64"):
        for kind in ("static", "continuous"):
            config = make_config("m", {"batching": kind, "batch_size": size})
            arm = check(config, model, H200, work, 0, traffic)
            assert not arm.blocked
            own, served = of_arm(work, traffic, arm.plan)
            assert served is not None
            sizes[size, kind] = (own.batch_size, served.concurrent, arm.memory.kv)
    for kind in ("static", "continuous"):
        assert sizes["auto", kind] == sizes["16", kind]
        assert sizes["4", kind][:2] == (4, 4) and sizes["64", kind][:2] == (20, 64)
        assert sizes["4", kind][2] < sizes["16", kind][2] < sizes["64", kind][2]
    alone = check(make_config("m", {"batch_size": "4"}), model, H200, work, 0, traffic)
    assert [v.axis for v in alone.blocked] == ["batch_size"]


@pytest.mark.parametrize(("spare_bytes", "refused"), [(0, False), (-1, True)])
def test_of_pages_too_the_last_byte_counts(spare_bytes: int, refused: bool) -> None:
    traffic, config = requests((100, 60)), make_config("m", {"batching": "continuous"})
    need = check(config, facts("pocket"), CPU, workload_of(traffic), 0, traffic).memory.total
    machine = replace(CPU, free_bytes=need + spare_bytes)
    assert bool(check(config, facts("pocket"), machine, workload_of(traffic), 0, traffic).blocked) is refused


def test_a_step_of_continuous_batching_is_one_row_with_a_mask_for_each_cached_token() -> None:
    """10 pages of 16 tokens and a step of 128, one mask for all 28 layers in bfloat16; two take turns."""
    traffic, model = requests((100, 60), pages=10), facts("random:Qwen3-0.6B")
    work, workspace = workload_of(traffic), {}
    arms = {"one": {}, "two": {"async_batching": "on"}, "flash": {"attention": "flash_attention_2"}}
    for name, changes in arms.items():
        choices = {"batching": "continuous", "page_size": "16", "batch_tokens": "128", **changes}
        checked = check(make_config("m", choices), model, H200, work, 0, traffic)
        assert not checked.blocked, checked.blocked
        workspace[name] = checked.memory.workspace
    mask = 128 * (10 * 16 + 128) * 2
    assert workspace["two"] - workspace["one"] == mask and workspace["one"] - workspace["flash"] == mask
    alone = Workload(prompt_tokens=128, max_new_tokens=1)
    prompt = check(make_config("m", {"attention": "flash_attention_2"}), model, H200, alone)
    assert workspace["flash"] == prompt.memory.workspace, "as a prompt of so many tokens"
