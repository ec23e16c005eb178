"""The scripts that the page shows."""

import ast

import pytest

from tests.support.machines import facts
from tests.support.worker import request
from tokendyno.backend.config import ArmRequest, Request
from tokendyno.backend.engine.bench import Bench
from tokendyno.ui.compare.code import MAX_NAME, MAX_PROMPT_CHARACTERS, code_texts, script_name


def shown(bench: Bench, run_request: Request) -> str:
    """Both scripts, each of which says as much."""
    return "\n".join(code_texts(bench.check(run_request)["A"], facts(), run_request.workload, paths=True))


def test_an_arm_that_runs_is_a_script(warm_bench: Bench) -> None:
    text = shown(warm_bench, request({"attention": "eager"}))
    ast.parse(text)
    assert text.startswith("# This arm is transformers' own calls.") and "attention=eager" in text


def test_an_arm_that_would_be_refused_is_the_reason_as_a_comment(warm_bench: Bench) -> None:
    text = shown(warm_bench, request({"loop": "own"}))
    assert ast.parse(text).body == [] and "Set cache=static." in text.replace("\n# ", " ")


def test_a_very_long_prompt_is_not_sent_back(warm_bench: Bench) -> None:
    long = "x" * MAX_PROMPT_CHARACTERS
    asked = [request({}, model="random:Qwen3-0.6B", prompt=prompt) for prompt in (long + "x", long)]
    text = shown(warm_bench, asked[0])
    assert ast.parse(text).body == [] and "20,001 characters" in text
    assert long in shown(warm_bench, asked[1])


@pytest.mark.parametrize(
    ("model", "choices", "name"),
    [
        ("pocket", {}, "pocket-A.py"),
        ("Qwen/Qwen3-0.6B@main", {"loop": "own", "dtype": "float32"}, "Qwen3-0.6B-main-A-loop-own-dtype-float32.py"),
        ("random:gpt2", {}, "random-gpt2-A.py"),
        ("/home/ada/my model/", {}, "my-model-A.py"),
        ("m" * 300, {}, "m" * MAX_NAME + ".py"),
    ],
)
def test_a_script_is_saved_under_a_name_that_tells_it_from_others(
    model: str, choices: dict[str, str], name: str
) -> None:
    assert script_name(model, ArmRequest("A", choices)) == name
