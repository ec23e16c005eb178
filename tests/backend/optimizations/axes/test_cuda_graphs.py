"""When CUDA graphs can be captured, and by whom: every verdict of the axis, and no other."""

from collections import Counter
from typing import Any

import pytest

from tests.support.machines import CPU, H200, facts, settled
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.config import Workload
from tokendyno.backend.counts import counts_of
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.prove.profile import Trace
from tokendyno.backend.worker.witness import find

STATIC = "cache=static"
OWN = "cache=static,loop=own,cuda_graphs=manual"
AUTO: dict[str, str] = {"cuda_graphs": "auto"}
LOOP = {"cache": "static", "loop": "own"}
MODE = {"compile": "reduce-overhead", "cache": "static"}
LLAMA, MIXTURE, BERT = "random:Qwen3-0.6B", "random:gpt-oss-20b", "bert-base-uncased"


def fixes(arm: str, model: str = LLAMA, machine: Any = H200) -> list[dict[str, str]]:
    """The fix of each refusal that the axis makes."""
    refusals = check(parse_arm("m", arm), facts(model), machine, Workload(prompt="x")).blocked
    return [verdict.fix for verdict in refusals if verdict.axis == "cuda_graphs"]


@pytest.mark.parametrize(
    ("arm", "expected"),
    [
        ("cuda_graphs=off", []),
        (f"{STATIC},compile=reduce-overhead,cuda_graphs=off", [{"compile": "default"}]),
        (f"{STATIC},compile=max-autotune,cuda_graphs=off", [{"compile": "max-autotune-no-cudagraphs"}]),
        (f"{STATIC},compile=max-autotune-no-cudagraphs,cuda_graphs=off", []),
        ("cuda_graphs=compile", [MODE]),
        (f"{STATIC},compile=default,cuda_graphs=compile", [MODE]),
        (f"{STATIC},compile=reduce-overhead,cuda_graphs=compile", []),
        (f"{STATIC},compile=reduce-overhead,cuda_graphs=compile,quantization=bnb-int8", [AUTO]),
        ("cuda_graphs=manual", [LOOP]),
        ("loop=own,cuda_graphs=manual", [LOOP]),
        (OWN, []),
        (f"{OWN},compile=default", []),
        (f"{OWN},compile=reduce-overhead", [{"compile": "default"}]),
        (f"{OWN},quantization=bnb-int8", [{"quantization": "torchao-int8"}]),
        (f"{OWN},quantization=torchao-int8", []),
        (f"{OWN},experts=eager", []),  # this model has none
    ],
)
def test_on_a_gpu(arm: str, expected: list[dict[str, str]]) -> None:
    assert fixes(arm) == expected


@pytest.mark.parametrize("more", ["", ",quantization=bnb-int8", ",experts=eager"])
@pytest.mark.parametrize("arm", ["cuda_graphs=manual", OWN, "cuda_graphs=compile", f"{STATIC},cuda_graphs=compile"])
def test_on_a_cpu_there_is_one_reason_whatever_else_is_wrong(arm: str, more: str) -> None:
    for model in (LLAMA, MIXTURE):
        assert fixes(arm + more, model, CPU) == [AUTO]


@pytest.mark.parametrize(
    ("arm", "expected"),
    [
        ("", []),
        ("shapes=buckets", []),
        ("compile=default,shapes=dynamic", [{"shapes": "buckets"}]),
        ("compile=reduce-overhead", [{"compile": "default"}]),
        ("attention=flex_attention", [{"attention": "auto"}]),
        ("attention=flash_attention_2", []),
        ("attention=flash_attention_2,shapes=buckets", [{"attention": "sdpa"}]),
        ("quantization=bnb-int8", [{"quantization": "torchao-int8"}]),
    ],
)
def test_the_pass_of_an_encoder_is_captured_by_itself(arm: str, expected: list[dict[str, str]]) -> None:
    assert fixes(f"cuda_graphs=manual,{arm}".rstrip(","), BERT) == expected


@pytest.mark.parametrize(("replayed", "single", "expected"), [(10, 0, 10), (4, 9, 19)])
def test_replays_count_and_single_products_are_against_them(replayed: int, single: int, expected: int) -> None:
    counts = counts_of({"counted_steps": 10.0, "manual_replays": float(replayed)})
    trace = Trace(Counter(), Counter(), Counter(), 4, Counter({"aten::addmm": single}))
    finding = find("cuda_graphs", Observation(None, None, settled(facts(BERT), AUTO, H200).plan, lambda: trace, counts))
    assert (finding.effective, finding.reached, finding.expected) == ("manual", replayed, expected)
