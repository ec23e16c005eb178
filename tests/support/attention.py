"""Machines and verdicts for the tests of attention."""

from dataclasses import replace

import pytest
from transformers import AutoConfig, AutoModelForCausalLM

from tests.support.machines import CPU, GIB, GPU_PACKAGES, H200, facts
from tests.support.tiny_models import CONFIGS
from tokendyno.backend.evidence import Level
from tokendyno.backend.hardware import Gpu, Machine
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations import subject_of
from tokendyno.backend.optimizations.axes.attention import FA2, FA3, FA4, HUB_FA2, HUB_FA3, Attention
from tokendyno.backend.worker.patch import attention

FLASH = (FA2, FA3, FA4, HUB_FA2, HUB_FA3)
BARE = replace(H200, packages=tuple((n, v) for n, v in GPU_PACKAGES.items() if not n.startswith("flash")))
OFFLINE = replace(BARE, hub_offline=True)


def gpu(major: int, minor: int, machine: Machine = BARE) -> Machine:
    return replace(machine, gpus=(Gpu(0, "a GPU", 80 * GIB, 79 * GIB, (major, minor)),))


def verdicts(name: str, model: ModelFacts | None = None, machine: Machine = CPU, **choices: str) -> dict[Level, str]:
    """Level -> the reasons given for a choice, for a model without sinks unless one is named."""
    every = {"cache": "dynamic", "compile": "off", "dtype": "auto", "attention": name} | choices
    found: dict[Level, str] = {}
    for verdict in Attention().verdicts(name, subject_of(model or facts("random:Qwen3-0.6B"), machine, every)):
        found[verdict.level] = " ".join([found.get(verdict.level, ""), verdict.reason, verdict.becomes])
    return found


def refused(architecture: str, name: str) -> str:
    """What transformers says when a tiny model is made with this attention; "" if nothing."""
    try:
        config = AutoConfig.for_model(architecture, **CONFIGS[architecture])
        AutoModelForCausalLM.from_config(config, attn_implementation=name)
    except (ValueError, ImportError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


REFUSALS = [
    ("gpt_oss", "sdpa", "random:gpt-oss-20b", "does not support"),
    ("gpt_oss", "sdpa-gqa", "random:gpt-oss-20b", "does not support"),
    ("gpt2", "flex_attention", "random:gpt2", "does not support"),
    ("llama", FA2, "random:Qwen3-0.6B", "doesn't seem to be installed"),
    ("llama", FA3, "random:Qwen3-0.6B", "doesn't seem to be installed"),
    ("llama", FA4, "random:Qwen3-0.6B", "doesn't seem to be installed"),
    ("llama", HUB_FA2, "random:Qwen3-0.6B", "offline"),
    ("llama", HUB_FA3, "random:Qwen3-0.6B", "offline"),
]


ALLOWED = [
    (architecture, name)
    for architecture in CONFIGS
    for name in ("eager", "sdpa", "sdpa-gqa", "flex_attention")
    if (architecture, name) not in {(r[0], r[1]) for r in REFUSALS}
    and (architecture, name) != ("gpt_oss", "flex_attention")
]


@pytest.fixture(autouse=True, scope="module")
def registered() -> None:
    attention.register_grouped_attention()


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
