"""The code samples of the documents, run in a folder with a tiny model under each printed name."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripts import Scripts
from tests.support.tiny_models import CONFIGS
from tokendyno.backend.paths import PRESETS
from tools.samples import Sample

NAMES = {
    "gpt2": "gpt2",
    "meta-llama/Meta-Llama-3-8B": "llama",
    "meta-llama/Meta-Llama-3-8B-Instruct": "llama",
    "Qwen/Qwen3-0.6B": "qwen3",
    "allenai/Olmo-3-7B-Think": "olmo3",
    "openai/gpt-oss-20b": "",
    "openai/gpt-oss-120b": "",
    "gpt-oss-in-bfloat16": "gpt_oss",
}
"""Printed names, and the architecture that lies there in small; "": the embedded model in MXFP4."""
WIDER = {
    "vocab_size": 3072,
    "hidden_size": 128,
    "intermediate_size": 256,
    "head_dim": 32,
    "num_hidden_layers": 1,
    "layer_types": ["full_attention"],
}
GPT2 = {"vocab_size": 3072, "n_embd": 128, "n_layer": 1}
TEMPLATE = "{% for message in messages %}{{ message.content }} {% endfor %}{{ reasoning_effort }}"
HARNESS = """
import logging, torch, warnings
from torch._dynamo.utils import get_compilation_metrics
from transformers import AutoModelForCausalLM, AutoTokenizer
class Said(logging.Handler):
    def emit(self, record):
        said.append(record.getMessage())
said, error, text = [], "", ""
logging.getLogger("transformers").addHandler(Said())
inputs = AutoTokenizer.from_pretrained("gpt2")("Once upon a time", return_tensors="pt")
space = dict(globals(), input_ids=inputs["input_ids"])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        exec({calls!r}, space)
        then = eval({then!r}, space) if {then!r} else True
    except Exception as raised:
        error, text, then = type(raised).__name__, str(raised), False
graphs = sum(not one.is_runtime and not one.fail_type for one in get_compilation_metrics())
said += [str(one.message) for one in caught]
new_ids = [error, text, said, graphs, then]
"""


def shrunk(folder: Path) -> None:
    """The tiny models, each with the tokenizer of the embedded one and a chat template."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    for name, architecture in NAMES.items():
        there = folder / name
        shutil.copytree(PRESETS / "models" / "pocket-mxfp4", there)
        (there / "chat_template.jinja").write_text(TEMPLATE)
        if architecture:
            shape = CONFIGS[architecture] | (GPT2 if architecture == "gpt2" else WIDER)
            torch.manual_seed(0)
            config = AutoConfig.for_model(architecture, **shape, initializer_range=0.3)
            AutoModelForCausalLM.from_config(config).save_pretrained(there)


@contextlib.contextmanager
def sample_scripts(folder: Path) -> Iterator[Scripts]:
    """Runs code in a process of its own, in a folder with the tiny models, without the Hub."""
    shrunk(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("HF_HOME", str(folder / "hub"))
        found = Scripts(folder)
    yield found
    found.close()


def outcome(scripts: Scripts, name: str, sample: Sample, calls: str, then: str = "") -> list[Any]:
    """[exception, its words, warnings and lines of the log, graphs compiled, whether `then` holds]"""
    if sample.shell:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        ran = subprocess.run(
            calls.split(), env=os.environ | {"PATH": path}, capture_output=True, text=True, timeout=60, check=False
        )
        return [f"exit {ran.returncode}" if ran.returncode else "", ran.stdout + ran.stderr, [], 0, True]
    found: list[Any] = scripts.run(name, HARNESS.format(calls=calls, then=then), sample.ranks)
    return found


def as_it_says(scripts: Scripts, sample: Sample) -> None:
    """A sample and its replacement do what the file says."""
    error, text, said, graphs, then = outcome(scripts, sample.name, sample, sample.calls, sample.then)
    assert (error, graphs) == (sample.error, sample.graphs or 0), (text, said)
    assert sample.says in text
    assert not sample.warns or any(sample.warns in one for one in said), said
    assert then or error
    if not sample.instead:
        return
    error, text, said, compiled, _ = outcome(scripts, f"{sample.name}-instead", sample, sample.instead)
    assert not error, text
    assert not sample.warns or not any(sample.warns in one for one in said), said
    assert compiled >= (sample.graphs == 0)
