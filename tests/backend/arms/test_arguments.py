"""An arm in transformers' own terms: what its calls get, as the installed version takes it without a warning."""

import ast
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from transformers import AutoConfig, CompileConfig, GenerationConfig

from tests.support.machines import CPU, EIGHT, H200, facts
from tokendyno.backend.arms.arguments import NO_ARGUMENT, argument_of, arguments_of
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.config import Workload
from tokendyno.backend.hardware import Machine
from tokendyno.backend.optimizations import Choice, Optimization, all_axes
from tokendyno.backend.paths import PRESETS
from tokendyno.backend.worker.load.parallel import ATTENTION, shared_experts

STATIC = "past_key_values=StaticCache(config=model.config, max_cache_len=MAX_LENGTH)"
LOADS = {"attn_implementation", "device_map", "distributed_config", "dtype", "experts_implementation", "max_memory"}
EVERY = [
    pytest.param(axis, choice, id=f"{axis.name}={choice.name}")
    for axis in all_axes()
    for choice in axis.choices
    if choice.name != axis.default
]


class Names(dict[str, Any]):
    """What a script knows; the rest is of transformers, which imports its classes when they are asked for."""

    def __missing__(self, name: str) -> Any:
        return getattr(transformers, name)


@pytest.mark.parametrize(
    ("machine", "arm", "load", "generate"),
    [
        (H200, "", 'from_pretrained gets device_map="cuda"', "generate gets do_sample=False"),
        (
            H200, "loading=plain", 'from_pretrained gets no arguments; then model.to("cuda")',
            "generate gets do_sample=False",
        ),
        (
            CPU,
            "cache=static,compile=default",
            "from_pretrained gets no arguments",
            f'generate gets do_sample=False, {STATIC}, compile_config=CompileConfig(mode="default") with '
            "_compile_all_devices=True",
        ),
        (
            H200,
            "compile=default",
            'from_pretrained gets device_map="cuda"; then model.compile(mode="default")',
            "generate gets do_sample=False",
        ),
        (
            H200,
            "cache=static,loop=own,cuda_graphs=manual,projections=fused",
            'from_pretrained gets device_map="cuda"; by code of tokendyno, without an argument: projections=fused',
            "in place of generate, tokendyno's DecodeLoop(model, pad, eos, cuda_graph=True) gets "
            "past_key_values=StaticSlotCache(model.config, MAX_LENGTH)",
        ),
        (
            H200,
            "batching=continuous,page_size=32",
            'from_pretrained gets device_map="cuda"',
            "generate_batch gets continuous_batching_config=ContinuousBatchingConfig(page_size=32, "
            'max_batch_tokens=512, scheduler_type="fifo", use_async_batching=False, use_cuda_graph=False, '
            "allow_block_sharing=False, auto_switch_to_flash=False)",
        ),
    ],
)  # fmt: skip
def test_two_lines_say_what_transformers_gets(machine: Machine, arm: str, load: str, generate: str) -> None:
    checked = check(parse_arm("m", arm), facts("Llama-3-8B"), machine, Workload(prompt="x"))
    assert arguments_of(checked).lines() == [load, generate]


def test_an_encoder_has_no_generate_and_sampling_is_said() -> None:
    compiled = check(parse_arm("m", "compile=default"), facts("bert-base-uncased"), H200, Workload(prompt="x"))
    assert arguments_of(compiled).then == ['torch.compile(model, mode="default")']
    assert arguments_of(compiled).lines()[1] == "forward gets no arguments"
    sampled = check(parse_arm("m", ""), facts(), CPU, Workload(prompt="x", temperature=0.5, top_k=7))
    assert arguments_of(sampled).generate == ["do_sample=True", "temperature=0.5", "top_k=7", "top_p=1.0"]


@pytest.mark.parametrize(("axis", "choice"), EVERY)
def test_every_choice_is_an_argument_of_today_or_says_that_it_is_none(
    axis: Optimization, choice: Choice, caplog: pytest.LogCaptureFixture
) -> None:
    model = SimpleNamespace(config=AutoConfig.from_pretrained(PRESETS / "models" / "pocket"))
    known = Names(torch=torch, MAX_LENGTH=64, model=model, model_type="mixtral", shared_experts=shared_experts)
    known |= {"ATTENTION": ATTENTION, "int": int, "range": range, "dict": dict}
    for name, machine in (("pocket", CPU), ("Llama-3-8B", EIGHT), ("gpt-oss-20b", EIGHT)):
        text = argument_of(axis, choice.name, facts(name), machine)
        assert text
        if text.startswith(("no argument", "model.")):
            assert text != NO_ARGUMENT or axis.name not in ("dtype", "quantization", "attention", "parallel")
            continue
        call = ast.parse(f"dict({text})", mode="eval").body
        assert isinstance(call, ast.Call)
        for keyword in call.keywords:
            made = keyword.arg or ""
            assert made in LOADS | {"quantization_config", "past_key_values", "continuous_batching_config"} or hasattr(
                GenerationConfig(), made
            )
            source = ast.unparse(keyword.value)
            if "torchao" in choice.name or "cuda." in source or "Quantized" in source:  # need what is not here
                continue
            eval(source, {}, known)  # a warning is an error here
    assert not caplog.records


def test_a_static_cache_says_that_generate_would_compile_and_a_default_arm_says_nothing() -> None:
    def said(arm: str, machine: Machine = H200) -> list[dict[str, str]]:
        checked = check(parse_arm("m", arm), facts("Llama-3-8B"), machine, Workload(prompt="x"))
        return [verdict.fix for verdict in checked.verdicts if "disable_compile=True" in verdict.reason]

    assert said("cache=static") == [{"compile": CompileConfig().mode}]
    for arm in ("", "cache=static,compile=default", "cache=static,loop=own", "cache=static,quantization=bnb-int8"):
        assert not said(arm), arm
    assert not said("cache=static", CPU)
    assert not check(parse_arm("m", ""), facts("Llama-3-8B"), H200, Workload(prompt="x")).verdicts
