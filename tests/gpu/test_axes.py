"""Every choice of every axis on a GPU: proved in the ledger, weights as large as predicted, and memory back at the
baseline afterwards, which other tests beside these would hide."""

from dataclasses import replace

import pytest

from tests.support.ledger import SOUND
from tests.support.refusals import skip_or_fail
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.optimizations import prompt_axes
from tools.bench.gpu.every import NOT_BACK_BYTES, WORK, keep, left_behind_bytes, perform, settled, used_bytes

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

SMALL = "random:Qwen3-0.6B"
REAL = (
    ("random:Llama-3-8B", (
        "baseline", "attention=eager", "cache=static", "cache=static,compile=reduce-overhead",
        "cache=static,compile=reduce-overhead,attention=sdpa-gqa", "cache=static,loop=own,cuda_graphs=manual",
        "cache=static,loop=own,cuda_graphs=manual,compile=default,attention=sdpa-gqa,projections=fused",
        "cache=static,compile=max-autotune", "cache=static,compile=max-autotune-no-cudagraphs",
        "cache=static,loop=own,cuda_graphs=manual,projections=fused,kernels=local",
        "cache=static-fp8,loop=own,cuda_graphs=manual,projections=fused,kernels=local",
        "attention=kernels-community/vllm-flash-attn3",
        "quantization=bnb-int8", "quantization=bnb-nf4", "quantization=bnb-nf4-double", "quantization=bnb-fp4",
        "quantization=torchao-int8", "quantization=torchao-fp8", "quantization=torchao-int4",
        "quantization=quanto-int8", "quantization=quanto-int4",
        "cache=offloaded", "cache=quantized-hqq4", "speculation=prompt-lookup", "kernels=local",
    )),
    ("random:Mistral-7B-v0.1", ("baseline", "cache=unwindowed", "cache=static,compile=reduce-overhead")),
    ("random:gpt-oss-20b", (
        "baseline", "quantization=bnb-nf4", "quantization=torchao-int8", "quantization=mxfp4",
        "quantization=mxfp4-dequantized", "experts=grouped_mm", "experts=batched_mm", "experts=eager",
        "attention=kernels-community/vllm-flash-attn3",
    )),
    ("random:bert-base-uncased", (
        "baseline", "attention=eager", "compile=default", "quantization=bnb-nf4", "dtype=float16,compile=default",
        "cuda_graphs=manual", "cuda_graphs=manual,shapes=buckets,dtype=bfloat16", "cuda_graphs=manual,attention=eager",
        "cuda_graphs=manual,projections=fused", "cuda_graphs=manual,quantization=torchao-int8",
    )),
)  # fmt: skip
PROMPTS = {"prefill=chunks-512": 600, "prefill=chunks-2048": 2_100}
"""Tokens of the prompt, where a short one would not be cut."""
WITHOUT_EFFECT = ("speculation=prompt-lookup", "compile=module")
"""The first may propose nothing: the text of random weights need not contain what stands in the prompt. The other
compiles what `generate` does not call."""


def arms() -> list[tuple[str, str]]:
    choices = [(axis, choice.name) for axis in prompt_axes() for choice in axis.choices]
    every = [(SMALL, "baseline")] + [(SMALL, f"{axis.name}={name}") for axis, name in choices if name != axis.default]
    pocket = [("pocket", arm) for arm in ("baseline", "cache=static,compile=reduce-overhead", "kernels=local")]
    return every + pocket + [(model, arm) for model, found in REAL for arm in found]


@pytest.fixture(scope="module")
def baseline() -> int:
    """Bytes in use on the GPU before anything was loaded."""
    return used_bytes()


@pytest.mark.parametrize(("model", "arm"), arms(), ids=[f"{m.removeprefix('random:')}-{a}" for m, a in arms()])
def test_the_choice_is_proved_and_the_memory_given_back(baseline: int, bench: Bench, model: str, arm: str) -> None:
    work = replace(WORK, prompt_tokens=PROMPTS.get(arm, WORK.prompt_tokens))
    choices, why = settled(bench, model, arm if "=" in arm else "", work)
    if why:
        keep(model, arm, None, None, why, 0)
        skip_or_fail(arm, why, model)
    run, document = perform(bench, model, choices, work)
    left = left_behind_bytes(bench, baseline)
    (only,) = document["arms"]
    keep(model, arm, run, only, "", left)
    assert run.status == "done", run.message
    asked = {part.split("=")[0] for part in arm.split(",") if "=" in part}
    for row in only["evidence"]:
        none = arm in WITHOUT_EFFECT and row["status"] == "no_effect"
        assert row["status"] in SOUND or none or (row["status"] == "fallback" and row["axis"] in asked), row
    if "parallel" not in arm:
        assert only["weight_bytes"] == pytest.approx(only["memory_predicted_bytes"]["weights"], rel=0.01)
    assert left < NOT_BACK_BYTES
