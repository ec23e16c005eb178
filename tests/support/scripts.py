"""Exported scripts beside the worker: run both, and compare their tokens."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.machines import settled
from tests.support.refusals import skip_or_fail
from tokendyno.backend import hardware
from tokendyno.backend.arms.check import Checked
from tokendyno.backend.config import ArmRequest, Request, Workload
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.export import script
from tokendyno.backend.models import ModelFacts, resolve
from tokendyno.backend.optimizations import Choice, Optimization, all_axes, prompt_axes
from tokendyno.backend.paths import PRESETS
from tokendyno.backend.script.definitions import definitions
from tokendyno.backend.script.parts import Script

WORK = Workload("Once upon a time, there was a little fox named Pip.", max_new_tokens=24, ignore_eos=True)
CHOICES = [(axis, choice) for axis in prompt_axes() for choice in axis.choices if choice.name != axis.default]
LIMIT_S = 240

ONE = """
import json, os, runpy, sys
made = runpy.run_path(sys.argv[1])
with open(sys.argv[1] + "." + os.environ.get("RANK", "0") + ".json", "w") as answer:
    json.dump(made["new_ids"], answer)
"""
"""Runs one script, or a rank of it. A GPU cannot be used in a forked process once its parent has, and some imports
do."""

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
            with open(path + ".0.json", "w") as answer:
                json.dump(made["new_ids"], answer)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Imports once, then runs each script in a forked process, so that none leaves anything behind for the next."""


def preamble(parts: Script) -> str:
    """The imports and definitions of a script's parts, as they are printed."""
    found = definitions(parts.definitions)
    return "\n".join([*sorted({*parts.imports, *found.imports}), *found.sources])


class Scripts:
    """Runs scripts one after the other; on a CPU in forks of a process that has done the imports, and those of several
    ranks as they say that they are run, with torchrun."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._log = folder, (folder / "log").open("w")
        self._env = os.environ | {"TOKENIZERS_PARALLELISM": "false"}
        self._forks = os.environ.get("TOKENDYNO_DEVICE") == "cpu"
        self._one = folder / "one.py"
        self._one.write_text(ONE)
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER if self._forks else ""],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=folder,
            env=self._env,
        )

    def run(self, name: str, text: str, ranks: int = 1) -> list[int]:
        """The ids that a script generates, on each of its ranks."""
        path = self._folder / f"{name}.py"
        path.write_text(text)
        code = self._fork(path) if self._forks and ranks == 1 else self._start(path, ranks)
        assert code == "0", (self._folder / "log").read_text()[-3000:] + text
        ids: list[list[int]] = [json.loads(Path(f"{path}.{rank}.json").read_text()) for rank in range(ranks)]
        assert all(one == ids[0] for one in ids), ids
        return ids[0]

    def _fork(self, path: Path) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{path}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def _start(self, path: Path, ranks: int) -> str:
        launched = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks > 1 else []
        command = [sys.executable, *launched, str(self._one), str(path)]
        ran = subprocess.run(command, cwd=self._folder, env=self._env, stdout=self._log, stderr=self._log, check=False)
        return str(ran.returncode)

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            assert pipe is not None
            pipe.close()
        self._process.wait(60)


def small_models(folder: Path, positions: int = 512) -> list[ModelFacts]:
    """The embedded models, and a tiny one without sinks, windows and experts for texts of so many tokens."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    pocket = PRESETS / "models" / "pocket"
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=3072,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=positions,
        initializer_range=0.3,
        dtype="bfloat16",
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(pocket / name, folder)
    return [resolve(name) for name in ("pocket", f"{pocket}-mxfp4", str(folder))]


def arm_with(models: list[ModelFacts], axis: Optimization, choice: Choice) -> tuple[ModelFacts, Checked]:
    """The first model with which a choice runs here as requested, or at all; if there is none, skips what is listed and
    fails else. Compiled arms use the last model, which compiles fastest."""
    arms = [(model, settled(model, {axis.name: choice.name}, hardware.detect(), WORK)) for model in models]
    running = [(model, checked) for model, checked in arms if not checked.blocked]
    if not running:
        reason, device = arms[0][1].blocked[0].reason, hardware.detect().device
        skip_or_fail(f"{axis.name}={choice.name}", reason, device=device)
    as_asked = [arm for arm in running if not any(v.level == "fallback" for v in arm[1].verdicts)] or running
    return as_asked[-1 if as_asked[-1][1].plan.generate.compile_mode else 0]


def same_tokens(
    name: str, model: ModelFacts, choices: dict[str, str], bench: Bench, scripts: Scripts, work: Workload = WORK
) -> list[int]:
    """The ids that an arm generates, the same in the bench and as a script."""
    run = bench.wait(bench.submit(Request(model.model, [ArmRequest("A", choices)], work)), LIMIT_S)
    assert run.status == "done", run.message
    checked = settled(model, choices, hardware.detect(), work)
    ids = scripts.run(name, script.script(checked, model, work), checked.plan.load.parallel.ranks)
    assert ids == run.arms["A"].ids
    return ids


def same_tokens_with(
    axis: Optimization, choice: Choice, models: list[ModelFacts], bench: Bench, scripts: Scripts
) -> None:
    """`same_tokens` for a choice and what it needs."""
    model, checked = arm_with(models, axis, choice)
    asked = {a.name: checked.requested[a.name] for a in all_axes() if checked.requested[a.name] != a.default}
    ids = same_tokens(f"{axis.name}-{choice.name}".replace("/", "-"), model, asked, bench, scripts)
    assert len(set(ids)) > 3, "a text that says nothing"
