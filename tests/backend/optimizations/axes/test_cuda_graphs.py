"""When CUDA graphs can be captured, and by whom: every verdict of the axis, and no other."""

from typing import Any

import pytest

from backend.arms.check import check
from backend.arms.parse import parse_arm
from backend.config import Workload
from tests.support.machines import CPU, H200, facts

STATIC = "cache=static"
OWN = "cache=static,loop=own,cuda_graphs=manual"
AUTO: dict[str, str] = {"cuda_graphs": "auto"}
LOOP = {"cache": "static", "loop": "own"}
MODE = {"compile": "reduce-overhead", "cache": "static"}
LLAMA, MIXTURE, BERT = "random:Qwen3-0.6B", "random:gpt-oss-20b", "bert-base-uncased"


def fixes(arm: str, model: str = LLAMA, machine: Any = H200) -> list[dict[str, str]]:
    """The fix of each refusal that the axis makes."""
    found = check(parse_arm("m", arm), facts(model), machine, Workload(prompt="x")).blocked
    return [verdict.fix for verdict in found if verdict.axis == "cuda_graphs"]


@pytest.mark.parametrize(
    ("arm", "expected"),
    [
        ("cuda_graphs=off", []),
        (f"{STATIC},compile=default,cuda_graphs=off", []),
        (f"{STATIC},compile=reduce-overhead,cuda_graphs=off", [{"compile": "default"}]),
        (f"{STATIC},compile=max-autotune,cuda_graphs=off", [{"compile": "max-autotune-no-cudagraphs"}]),
        (f"{STATIC},compile=max-autotune-no-cudagraphs,cuda_graphs=off", []),
        ("cuda_graphs=compile", [MODE]),
        (f"{STATIC},compile=default,cuda_graphs=compile", [MODE]),
        (f"{STATIC},compile=reduce-overhead,cuda_graphs=compile", []),
        (f"{STATIC},compile=max-autotune,cuda_graphs=compile", []),
        (f"{STATIC},compile=reduce-overhead,cuda_graphs=compile,quantization=bnb-int8", [AUTO]),
        (f"{STATIC},compile=reduce-overhead,cuda_graphs=off,quantization=bnb-int8", []),
        ("cuda_graphs=manual", [LOOP]),
        (f"{STATIC},cuda_graphs=manual", [LOOP]),
        ("loop=own,cuda_graphs=manual", [LOOP]),
        (OWN, []),
        (f"{OWN},compile=default", []),
        (f"{OWN},compile=reduce-overhead", [{"compile": "default"}]),
        (f"{OWN},quantization=bnb-int8", [{"quantization": "torchao-int8"}]),
        (f"{OWN},quantization=bnb-nf4", []),
        (f"{OWN},quantization=torchao-int8", []),
        (f"{OWN},experts=eager", []),  # this model has none
    ],
)
def test_on_a_gpu(arm: str, expected: list[dict[str, str]]) -> None:
    assert fixes(arm) == expected


def test_eager_experts_cannot_be_captured_unless_a_kernel_computes_them() -> None:
    assert fixes(f"{OWN},experts=eager", MIXTURE) == [{"experts": "batched_mm"}]
    assert fixes(f"{OWN},experts=grouped_mm", MIXTURE) == []
    assert fixes(f"{OWN},experts=eager,quantization=mxfp4", MIXTURE) == []


@pytest.mark.parametrize("more", ["", ",quantization=bnb-int8", ",experts=eager"])
@pytest.mark.parametrize("arm", ["cuda_graphs=manual", OWN, "cuda_graphs=compile", f"{STATIC},cuda_graphs=compile"])
def test_on_a_cpu_there_is_one_reason_whatever_else_is_wrong(arm: str, more: str) -> None:
    for model in (LLAMA, MIXTURE):
        assert fixes(arm + more, model, CPU) == [AUTO]


def test_off_is_never_refused_on_a_cpu() -> None:
    for mode in ("default", "reduce-overhead", "max-autotune"):
        assert fixes(f"{STATIC},compile={mode},cuda_graphs=off", machine=CPU) == []


def test_an_encoder_has_no_loop_to_capture() -> None:
    assert fixes("cuda_graphs=manual", BERT) == [{"cuda_graphs": "compile", "compile": "reduce-overhead"}]
    assert fixes("cuda_graphs=compile", BERT) == [{"compile": "reduce-overhead"}]
    assert fixes("compile=reduce-overhead,cuda_graphs=compile", BERT) == []
    assert fixes("compile=reduce-overhead,cuda_graphs=off", BERT) == [{"compile": "default"}]
