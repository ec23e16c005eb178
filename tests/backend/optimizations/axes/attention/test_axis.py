"""The attention axis: its rules held against transformers, its proof against every implementation that runs here."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.auto.configuration_auto import model_type_to_module_name
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from tests.support.machines import CPU, facts
from tests.support.scripts import preamble
from tests.support.tiny_models import CONFIGS, tiny
from tokendyno.backend.models.families import ENCODERS, NO_FLASH, NO_FLEX, NO_SDPA
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import subject_of
from tokendyno.backend.optimizations.axes.attention.axis import AXIS
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.script.parts import Script
from tokendyno.backend.worker.patch import attention

# --- what transformers supports -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flag", "names"),
    [("_supports_sdpa", NO_SDPA | {"got_ocr2"}), ("_supports_flash_attn", NO_FLASH), ("_supports_flex_attn", NO_FLEX)],
)
def test_the_tables_are_what_the_classes_of_transformers_say(flag: str, names: frozenset[str]) -> None:
    folder = Path(transformers.__file__).parent / "models"
    without = set()
    for architecture in (*MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, *ENCODERS):
        module = model_type_to_module_name(architecture)
        source = folder / module / f"modeling_{module}.py"
        if source.is_file() and "True" not in re.findall(rf"^    {flag}\s*=\s*(\w+)", source.read_text(), re.MULTILINE):
            without.add(architecture)
    assert names == without


@pytest.mark.parametrize("architecture", [*CONFIGS, "gemma2"])
def test_auto_is_what_transformers_takes_by_itself(architecture: str) -> None:
    if architecture == "gemma2":
        config = AutoConfig.for_model("gemma2", **CONFIGS["llama"])
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
    else:
        model = tiny(architecture)
    known = replace(facts("random:Qwen3-0.6B"), architecture=architecture, sinks=architecture == "gpt_oss")
    assert AXIS.resolve("auto", subject_of(known, CPU, {})) == model.config._attn_implementation


# --- the script -----------------------------------------------------------------------------------


@pytest.fixture
def script() -> Iterator[Script]:
    yield Script()


def planned(name: str | None) -> Plan:
    return Plan(LoadPlan(ModelSource("random"), attention=name))


def test_a_script_names_the_implementation(script: Script) -> None:
    AXIS.write(script, planned("eager"))
    assert (script.load, script.definitions) == ({"attn_implementation": "'eager'"}, [])


def test_a_script_carries_the_workers_own_function_with_it(script: Script) -> None:
    AXIS.write(script, planned("sdpa-gqa"))
    assert script.definitions == [("worker/patch/attention.py", "register_grouped_attention")]
    from transformers import AttentionInterface

    names: dict[str, Any] = {}
    exec("\n".join([preamble(script), *script.prepare]), names)
    assert AttentionInterface()["sdpa-gqa"] is names["grouped_attention"]
    attention.register_grouped_attention()


@pytest.mark.parametrize(("architecture", "sinks"), [("gemma2", False), ("gpt_oss", True)])
def test_sdpa_falls_back_to_eager_once_and_for_one_reason(architecture: str, sinks: bool) -> None:
    known = replace(facts("random:Qwen3-0.6B"), architecture=architecture, sinks=sinks)
    found = [v for v in AXIS.verdicts("sdpa", subject_of(known, CPU, {})) if v.level == "fallback"]
    assert ["attention sinks" in verdict.reason for verdict in found] == [sinks]
