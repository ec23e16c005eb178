"""The short script of an arm is short, is Python whatever a user typed, and gives the tokens of the run."""

import ast
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tokendyno as td
from tests.backend.export.test_script import PROMPTS, SOURCES
from tests.support.machines import CPU, H200, facts
from tokendyno.backend import hardware
from tokendyno.backend.arms.bundles import grant, written_arm
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config, parse_arm
from tokendyno.backend.arms.presets import ArmPreset, arm_presets
from tokendyno.backend.config import Request, Workload
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.export.short import MOST_LINES, short_script
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import ModelFacts, resolve
from tokendyno.backend.paths import ROOT

PROMPT = "Once upon a time, there was a little fox named Pip."
OTHERS = ("baseline", "prompt-lookup", "static", "own-loop", "chunked-prefill")
RUN_HERE = [
    pytest.param(one, marks=pytest.mark.slow if one.name == "baseline" else pytest.mark.full, id=one.name)
    for one in arm_presets()
    if one.bundle or one.name in OTHERS
]
RUN = """
import json, runpy, sys
made = runpy.run_path(sys.argv[1])
by_library = "generated" in made
ids = made["generated"].ids if by_library else made["output"][0, made["inputs"]["input_ids"].shape[1]:].tolist()
open(sys.argv[2], "w").write(json.dumps(ids))
"""


def short(arm: str = "", machine: Machine = CPU, given: ModelFacts | None = None, **work: Any) -> str:
    defaults: dict[str, Any] = {"prompt": "Once", "max_new_tokens": 8}
    workload, model = Workload(**defaults | work), given or facts()
    return short_script(check(parse_arm("m", arm), model, machine, workload), model, workload)


@pytest.mark.parametrize("machine", [CPU, H200], ids=["cpu", "h200"])
@pytest.mark.parametrize("preset", arm_presets(), ids=lambda one: one.name)
def test_every_preset_that_runs_is_short(preset: ArmPreset, machine: Machine) -> None:
    work, model = Workload(PROMPT, max_new_tokens=24, temperature=0.7, top_p=0.9), resolve("random:Llama-3-8B")
    for facts_of in (model, facts()):
        choices = grant(preset, facts_of, machine, work).choices
        checked = check(make_config(facts_of.model, choices), facts_of, machine, work)
        if not checked.blocked:
            text = short_script(checked, facts_of, work)
            compile(text, "script.py", "exec")
            assert text.count("\n") <= MOST_LINES and all(len(line) <= 120 for line in text.splitlines())
            assert ("import tokendyno" in text) != ("from_pretrained" in text)
            said = " ".join(text.replace("\n#", "").split())
            assert ("import tokendyno" in text) == ("pip install -e . in a clone of its repository" in said)


@pytest.mark.parametrize("arm", ["", "cache=static,loop=own"], ids=["transformers", "library"])
@pytest.mark.parametrize("prompt", PROMPTS)
def test_nothing_that_a_user_types_is_code(prompt: str, arm: str) -> None:
    for text in (short(arm, prompt=prompt), short(arm, prompt=prompt, chat=True, system=prompt)):
        tree = ast.parse(text)
        assert not [one for one in ast.walk(tree) if isinstance(one, ast.Attribute) and one.attr == "abort"]
        said = [one.value for one in ast.walk(tree) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        assert prompt in said


@pytest.mark.parametrize("source", SOURCES)
def test_the_model_is_named_as_it_is_found(source: str) -> None:
    model = replace(facts(), model="mine", source=SOURCES[source])
    text = short("", given=model)
    assert text.count('gguf_file="small.Q4.gguf"') == (2 if source == "gguf" else 0)
    assert text.count('revision="refs/pr/1"') == (2 if source == "revision" else 0)
    assert ("/models" in short("cache=static,loop=own", given=model)) == (source in ("folder", "gguf"))


def test_what_a_run_has_is_in_both_ways() -> None:
    work: dict[str, Any] = {"prompt": "Hi", "chat": True, "system": "Be brief.", "temperature": 0.5, "seed": 3}
    for text in (short("", **work), short("cache=static,loop=own", **work)):
        for part in ('"role": "system", "content": "Be brief."', '"content": "Hi"', "temperature=0.5", "3"):
            assert part in text
    assert "ignore_eos=True" in short("cache=static,loop=own", ignore_eos=True)
    assert "eos_token_id" not in short("", ignore_eos=True)
    assert "100 //" in short("", prompt="", prompt_tokens=100) and "* 4" in short("", batch_size=4)
    assert "in 4 rows" in short("cache=static,loop=own", batch_size=4)


def test_continuous_batching_is_transformers_own_call() -> None:
    text = short("batching=continuous,page_size=16", given=resolve("pocket"), prompt_tokens=40, max_new_tokens=24)
    assert "model.generate_batch(prompts" in text and "page_size=16" in text
    assert text.count("\n") <= MOST_LINES and "tokendyno as td" not in text


@pytest.mark.parametrize("batching", ["continuous,page_size=16", "static,batch_order=sorted"])
def test_an_arm_of_many_requests_reads_prompts_by_the_library(batching: str) -> None:
    random = resolve("random:pocket")
    text = short(f"dtype=float32,batching={batching}", given=random, prompt="", prompt_tokens=40, max_new_tokens=24)
    compile(text, "script.py", "exec")
    assert ("batching=" in text) is ("continuous" in batching) is ("tokendyno batch" not in text)
    assert "max_length=64" in text and text.count("\n") <= MOST_LINES and "batch_order" not in text


@pytest.mark.full
def test_a_script_of_continuous_batching_gives_the_text_of_one_prompt(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(short("dtype=float32,batching=continuous,page_size=16", given=resolve("pocket"), prompt=PROMPT))
    ran = subprocess.run([sys.executable, script], cwd=ROOT, capture_output=True, text=True, timeout=200)
    assert "model.generate_batch(prompts" in script.read_text()
    with td.load("pocket", "dtype=float32", progress=False) as model:
        assert ran.stdout == f"{model.generate(PROMPT, max_new_tokens=8)}\n", ran.stderr[-2000:]


def same_tokens(model: ModelFacts, arm: str, work: Workload, bench: Bench, folder: Path) -> None:
    request = written_arm("A", arm, model.model, work, lambda: model)
    checked = check(make_config(model.model, request.choices), model, hardware.detect(), work)
    assert not checked.blocked
    run = bench.wait(bench.submit(Request(model.model, [request], work)), 400)
    assert run.status == "done", run.message
    script, answer = folder / "script.py", folder / "ids.json"
    script.write_text(short_script(checked, model, work), encoding="utf-8")
    command = [sys.executable, "-c", RUN, str(script), str(answer)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=400)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert json.loads(answer.read_text()) == run.arms["A"].ids
    assert ran.stdout.strip() == run.arms["A"].text.strip()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("preset", RUN_HERE)
def test_it_gives_the_tokens_of_the_run(
    preset: ArmPreset, models: list[ModelFacts], warm_bench: Bench, tmp_path: Path
) -> None:
    work = Workload(PROMPT, max_new_tokens=24)
    model = models[-1 if "compile" in preset.choices else 0]  # the last compiles fastest
    same_tokens(model, preset.name, work, warm_bench, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("arm", ["", "cache=static,loop=own"], ids=["transformers", "library"])
def test_a_synthetic_prompt_is_that_of_the_run(arm: str, warm_bench: Bench, tmp_path: Path) -> None:
    same_tokens(resolve("pocket"), arm, Workload(prompt_tokens=40, max_new_tokens=8), warm_bench, tmp_path)
