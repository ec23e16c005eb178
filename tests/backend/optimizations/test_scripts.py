"""Every choice that runs on this machine, as a script beside the worker: the same greedy tokens."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend import export, hardware
from backend.config import Workload
from backend.engine import Bench
from backend.models import PRESETS_DIR, ModelFacts, resolve
from backend.optimizations import Choice, Optimization, axes
from backend.records import ArmRequest, Request
from backend.rules import Checked
from tests.facts import settled

WORK = Workload("Once upon a time, there was a little fox named Pip.", max_new_tokens=24, ignore_eos=True)
CHOICES = [(axis, choice) for axis in axes() for choice in axis.choices if choice.name != axis.default]
LIMIT_S = 240

SERVER = """
import json, os, runpy, sys
import accelerate, torch, transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, GptOssForCausalLM, LlamaForCausalLM
for line in sys.stdin:
    path = line.strip()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(2, 1)
            made = runpy.run_path(path)
            with open(path + ".json", "w") as answer:
                json.dump(made["new_ids"], answer)
            code = 0
        finally:
            sys.stderr.flush()
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Imports once, then runs each script in a process of its own, so that nothing of one is left for the next."""


class Scripts:
    """Runs scripts, one after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._log = folder, (folder / "log").open("w")
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True,
            env=os.environ | {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"},
        )  # fmt: skip

    def run(self, name: str, text: str) -> list[int]:
        """The ids that a script makes."""
        path = self._folder / f"{name}.py"
        path.write_text(text)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{path}\n")
        self._process.stdin.flush()
        code = self._process.stdout.readline().strip()
        assert code == "0", (self._folder / "log").read_text()[-3000:] + text
        ids: list[int] = json.loads(Path(f"{path}.json").read_text())
        return ids

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            assert pipe is not None
            pipe.close()
        self._process.wait(60)


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scripts]:
    made = Scripts(tmp_path_factory.mktemp("scripts"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """Without the Hub: what must be fetched from there is refused, and skipped."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        made = Bench(None)
        made.start(prewarm=1)
        yield made
        made.close()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[ModelFacts]:
    """The embedded models, and a tiny one without sinks, windows and experts."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("models") / "llama"
    pocket = PRESETS_DIR / "models" / "pocket"
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=3072, hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=512, initializer_range=0.3, dtype="bfloat16",
    )  # fmt: skip
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(pocket / name, folder)
    return [resolve(name) for name in ("pocket", f"{pocket}-mxfp4", str(folder))]


def arm_with(models: list[ModelFacts], axis: Optimization, choice: Choice) -> tuple[ModelFacts, Checked]:
    """The first model with which a choice runs here as it was asked for, or at all; skips if there is none."""
    arms = [(model, settled(model, {axis.name: choice.name}, hardware.machine(), WORK)) for model in models]
    running = [(model, checked) for model, checked in arms if not checked.blocked]
    if not running:
        pytest.skip(arms[0][1].blocked[0].reason)
    return next((arm for arm in running if not any(v.level == "fallback" for v in arm[1].verdicts)), running[0])


@pytest.mark.slow
@pytest.mark.timeout(2 * LIMIT_S)
@pytest.mark.parametrize(("axis", "choice"), CHOICES, ids=[f"{a.name}={c.name}" for a, c in CHOICES])
def test_a_choice_as_a_script_makes_the_workers_tokens(
    axis: Optimization, choice: Choice, bench: Bench, models: list[ModelFacts], scripts: Scripts
) -> None:
    model, checked = arm_with(models, axis, choice)
    asked = {name: c for name, c in checked.requested.items() if c != {a.name: a.default for a in axes()}[name]}
    run = bench.wait(bench.submit(Request(model.model, [ArmRequest("A", asked)], WORK)), LIMIT_S)
    assert run.status == "done", run.message
    ids = scripts.run(f"{axis.name}-{choice.name}".replace("/", "-"), export.script(checked, model, WORK))
    assert ids == run.lanes["A"].ids
    assert len(set(ids)) > 3, "a text that says nothing"


@pytest.mark.slow
@pytest.mark.parametrize("arm", [{}, {"cache": "static", "loop": "own"}, {"shapes": "buckets"}], ids=str)
def test_a_script_ends_where_the_text_ends(arm: dict[str, str], bench: Bench, scripts: Scripts) -> None:
    work = Workload("Grandmother gave Anna a small seed.", max_new_tokens=300, batch_size=2)
    run = bench.wait(bench.submit(Request("pocket", [ArmRequest("A", arm)], work)), LIMIT_S)
    checked = settled(resolve("pocket"), arm, hardware.machine(), work)
    ids = scripts.run("ends", export.script(checked, resolve("pocket"), work))
    assert ids == run.lanes["A"].ids
    assert len(ids) < 300 and ids[-1] == 0
