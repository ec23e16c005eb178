"""What predictions depend on, read from a plan."""

import pytest

from tests.support.machines import CPU, H200, facts, settled
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.predict.setup import setup_of

STEP = "cache=static,compile="
MANUAL = "cache=static,loop=own,cuda_graphs=manual"


@pytest.mark.parametrize(
    ("arm", "graphs"),
    [
        ("", ""),
        ("cache=static", ""),
        (f"{STEP}default", ""),
        (f"{STEP}reduce-overhead", "compile"),
        (f"{STEP}max-autotune", "compile"),
        (f"{STEP}max-autotune-no-cudagraphs", ""),
        (MANUAL, "manual"),
        (f"{MANUAL},compile=default", "manual"),
        (f"{MANUAL},kernels=local", ""),
    ],
)
def test_who_captures_graphs(arm: str, graphs: str) -> None:
    plan = settled(facts("random:Qwen3-0.6B"), dict(parse_arm("m", arm).choices), H200).plan
    assert setup_of(plan, H200).graphs == graphs


@pytest.mark.parametrize(("shapes", "padded"), [("exact", False), ("padded", True), ("buckets", True)])
def test_only_padding_needs_a_mask(shapes: str, padded: bool) -> None:
    assert setup_of(settled(facts(), {"shapes": shapes}, CPU).plan, CPU).padded is padded


def test_the_rest_is_taken_over() -> None:
    asked = {"dtype": "float32", "quantization": "bnb-nf4", "cache": "static", "attention": "eager"}
    plan = settled(facts("random:Qwen3-0.6B"), asked, H200).plan
    found = setup_of(plan, H200)
    assert (found.dtype, found.quantization, found.cache.static, found.attention) == (
        "float32",
        "bnb-nf4",
        True,
        "eager",
    )
    assert (found.device, found.capability, found.cuda) == ("cuda", (9, 0), True)
    assert not setup_of(settled(facts(), {}, CPU).plan, CPU).cuda
    assert not found.fused
    fused = settled(facts("random:Qwen3-0.6B"), {**asked, "projections": "fused"}, H200).plan
    assert setup_of(fused, H200).fused
