"""Exported scripts beside the worker: run both, and compare their tokens."""

import json
import os
import shutil
import subprocess
import sys
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
import json, os, runpy, sys, traceback
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
        except BaseException:
            traceback.print_exc()
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
            cwd=folder, env=os.environ | {"TOKENIZERS_PARALLELISM": "false", "PYTORCH_NVML_BASED_CUDA_CHECK": "1"},
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


def small_models(folder: Path) -> list[ModelFacts]:
    """The embedded models, and a tiny one without sinks, windows and experts."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

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
    """The first model with which a choice runs here as it was asked for, or at all; skips if there is none. What is
    compiled runs with the last, which is compiled soonest."""
    arms = [(model, settled(model, {axis.name: choice.name}, hardware.machine(), WORK)) for model in models]
    running = [(model, checked) for model, checked in arms if not checked.blocked]
    if not running:
        pytest.skip(arms[0][1].blocked[0].reason)
    as_asked = [arm for arm in running if not any(v.level == "fallback" for v in arm[1].verdicts)] or running
    return as_asked[-1 if as_asked[-1][1].plan.generate.compile_mode else 0]


def same_tokens(
    name: str, model: ModelFacts, choices: dict[str, str], bench: Bench, scripts: Scripts, work: Workload = WORK
) -> list[int]:
    """The ids that an arm makes, in the bench and as a script alike."""
    run = bench.wait(bench.submit(Request(model.model, [ArmRequest("A", choices)], work)), LIMIT_S)
    assert run.status == "done", run.message
    checked = settled(model, choices, hardware.machine(), work)
    ids = scripts.run(name, export.script(checked, model, work))
    assert ids == run.lanes["A"].ids
    return ids


def same_tokens_with(
    axis: Optimization, choice: Choice, models: list[ModelFacts], bench: Bench, scripts: Scripts
) -> None:
    """The same with a choice and what it needs."""
    model, checked = arm_with(models, axis, choice)
    asked = {a.name: checked.requested[a.name] for a in axes() if checked.requested[a.name] != a.default}
    ids = same_tokens(f"{axis.name}-{choice.name}".replace("/", "-"), model, asked, bench, scripts)
    assert len(set(ids)) > 3, "a text that says nothing"
