"""The command that serves an arm: transformers' own where it has the options."""

from dataclasses import replace

import pytest

from tests.support.machines import CPU, facts
from tokendyno.backend.ablation.advise.serve_line import serve_line
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.config import Workload
from tokendyno.backend.hardware.number_formats import FormatTime
from tokendyno.backend.models import resolve
from tokendyno.backend.paths import PRESETS


@pytest.mark.parametrize(
    ("arm", "line", "note"),
    [
        ("", "transformers serve Qwen/Qwen3-0.6B", ""),
        ("attention=sdpa", "transformers serve Qwen/Qwen3-0.6B --attn-implementation sdpa", ""),
        ("cache=static,compile=reduce-overhead", "transformers serve Qwen/Qwen3-0.6B --compile", ""),
        ("quantization=bnb-nf4-double", "transformers serve Qwen/Qwen3-0.6B --quantization bnb-4bit", ""),
        ("quantization=bnb-nf4", "tokendyno serve --model Qwen/Qwen3-0.6B --arm quantization=bnb-nf4", "bnb-nf4"),
        ("cache=static,loop=own", "tokendyno serve --model Qwen/Qwen3-0.6B --arm cache=static,loop=own", "loop=own"),
    ],
)  # fmt: skip
def test_of_a_model_of_the_hub(arm: str, line: str, note: str) -> None:
    model = resolve("Qwen/Qwen3-0.6B")
    checked = check(parse_arm("Qwen/Qwen3-0.6B", arm), model, CPU, Workload("?"))
    found, why = serve_line(model, checked)
    assert found == line and (note in why if note else why == "")


def test_of_weights_that_are_not_on_the_hub() -> None:
    for model, line in (
        ("random:Qwen3-0.6B", "tokendyno serve --model random:Qwen3-0.6B"),
        ("pocket", f"transformers serve {PRESETS / 'models' / 'pocket'}"),
    ):
        checked = check(parse_arm(model, ""), facts(model), CPU, Workload("?"))
        assert serve_line(facts(model), checked)[0] == line


def test_the_dtype_that_an_arm_left_open_is_named_where_it_is_not_the_checkpoints() -> None:
    slow = replace(CPU, bfloat16=(FormatTime(8 << 20, 1, 2.14),))
    checked = check(parse_arm("pocket", ""), facts("pocket"), slow, Workload("?"))
    assert serve_line(facts("pocket"), checked)[0].endswith("pocket --dtype float32")
