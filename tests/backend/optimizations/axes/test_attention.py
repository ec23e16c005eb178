"""The attention axis: its rules held against transformers, its proof against every implementation that runs here."""

import json
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

from tests.support.attention import (  # noqa: F401
    ALLOWED,
    BARE,
    OFFLINE,
    REFUSALS,
    gpu,
    offline,
    refused,
    registered,
    verdicts,
)
from tests.support.local_worker import LocalWorker
from tests.support.machines import CPU, H200, facts
from tests.support.scripts import preamble
from tests.support.tiny_models import CONFIGS, tiny
from tests.support.worker import SENTENCE
from tokendyno.backend.arms.check import Checked, check
from tokendyno.backend.arms.parse import make_config, parse_arm
from tokendyno.backend.config import ArmRequest, Request, Workload
from tokendyno.backend.engine.allowed import check_allowed
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.limits import LIMITS
from tokendyno.backend.messages import Generate
from tokendyno.backend.models import resolve
from tokendyno.backend.models.families import ENCODERS, NO_FLASH, NO_FLEX, NO_SDPA
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import subject_of
from tokendyno.backend.optimizations.axes.attention import FA2, FA3, FA4, HUB_FA2, HUB_FA3, Attention
from tokendyno.backend.paths import ROOT
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
    assert Attention().resolve("auto", subject_of(known, CPU, {})) == model.config._attn_implementation


# --- the script -----------------------------------------------------------------------------------


@pytest.fixture
def script() -> Iterator[Script]:
    yield Script()


def planned(name: str | None) -> Plan:
    return Plan(LoadPlan(ModelSource("random"), attention=name))


def test_a_script_carries_the_workers_own_function_with_it(script: Script) -> None:
    Attention().write(script, planned("sdpa-gqa"))
    assert script.definitions == [("worker/patch/attention.py", "register_grouped_attention")]
    from transformers import AttentionInterface

    names: dict[str, Any] = {}
    exec("\n".join([preamble(script), *script.prepare]), names)
    assert AttentionInterface()["sdpa-gqa"] is names["grouped_attention"]
    attention.register_grouped_attention()


@pytest.mark.parametrize(("architecture", "sinks"), [("gemma2", False), ("gpt_oss", True)])
def test_sdpa_falls_back_to_eager_once(architecture: str, sinks: bool) -> None:
    known = replace(facts("random:Qwen3-0.6B"), architecture=architecture, sinks=sinks)
    fallbacks = [v for v in Attention().verdicts("sdpa", subject_of(known, CPU, {})) if v.level == "fallback"]
    assert [verdict.becomes for verdict in fallbacks] == ["eager"]


# --- as transformers refuses ----------------------------------------------------------------------


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(("architecture", "name", "model", "words"), REFUSALS, ids=[f"{r[0]}-{r[1]}" for r in REFUSALS])
def test_what_the_rules_do_not_let_through_is_refused_by_transformers(
    architecture: str, name: str, model: str, words: str
) -> None:
    assert words in refused(architecture, name)
    assert {"blocked", "fallback"} & set(verdicts(name, facts(model)))


@pytest.mark.parametrize(("architecture", "name"), ALLOWED)
def test_what_the_rules_let_through_is_not_refused(architecture: str, name: str) -> None:
    assert refused(architecture, name) == ""
    known = replace(facts("random:Qwen3-0.6B"), architecture=architecture)
    assert "blocked" not in verdicts(name, known)


# --- rules that only a GPU can probe ---------------------------------------------------------------


CAPABILITIES = [
    (FA2, (8, 0), True), (FA2, (10, 0), True), (HUB_FA2, (8, 6), True),
    (FA3, (8, 0), False), (FA3, (9, 0), True), (FA3, (10, 0), False), (HUB_FA3, (8, 9), False), (HUB_FA3, (9, 0), True),
    (FA4, (8, 9), False), (FA4, (9, 0), True), (FA4, (10, 0), True),
]  # fmt: skip


@pytest.mark.parametrize(("name", "capability", "runs"), CAPABILITIES)
def test_capability_decides_for_what_would_be_taken(name: str, capability: tuple[int, int], runs: bool) -> None:
    """Without packages: FlashAttention 3 is the Hub's kernel for Hopper then."""
    assert ("blocked" not in verdicts(name, machine=gpu(*capability))) is runs


@pytest.mark.parametrize(("name", "instead"), [(FA2, HUB_FA2), (FA3, HUB_FA3)])
def test_a_missing_package_is_amber_online_and_refused_offline_unless_the_kernel_is_here(
    name: str, instead: str
) -> None:
    assert instead in verdicts(name, machine=BARE)["fallback"]
    assert "fallback" not in verdicts(name, machine=H200)
    assert f"LOCAL_KERNELS={instead}" in verdicts(name, machine=OFFLINE)["blocked"]
    here = replace(OFFLINE, hub_kernels=(instead,))
    assert "blocked" not in verdicts(name, machine=here) and instead in verdicts(name, machine=here)["fallback"]


@pytest.mark.parametrize("name", [FA2, FA3, HUB_FA2])
def test_with_sinks_the_one_kernel_that_knows_them_is_taken(name: str) -> None:
    sinks = facts("random:gpt-oss-20b")
    assert HUB_FA3 in verdicts(name, sinks, H200)["fallback"]
    assert HUB_FA3 in verdicts(name, sinks, OFFLINE)["blocked"]
    assert "blocked" in verdicts(name, sinks, gpu(8, 0, H200))
    model = tiny("gpt_oss")
    compatible = model._compatible_flash_implementations
    assert name not in compatible and {HUB_FA3, FA4} <= set(compatible)


NAME, WORK = "some/attn", Workload(prompt=SENTENCE)
MACHINE = replace(CPU, hub_offline=True, hub_kernels=(NAME,))
KERNEL = """
import torch

def supports_flash_attn():
    return True

def flash_attn_forward(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **kwargs):
    groups, length = query.shape[1] // key.shape[1], key.shape[2]
    key, value = (one.repeat_interleave(groups, 1) for one in (key, value))
    seen = torch.ones(query.shape[2], length, dtype=torch.bool).tril(length - query.shape[2])
    scores = (query @ key.transpose(2, 3) * scaling).masked_fill(~seen, float("-inf"))
    return (scores.softmax(-1) @ value).transpose(1, 2).contiguous(), None
"""


def package(base: Path, name: str, code: str) -> Path:
    """A kernel package for CPUs of one file."""
    folder = base / name / "build" / "torch-cpu"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(code)
    about = {"id": f"some_{name}_cpu_1", "name": name, "version": 1, "license": "Apache-2.0", "python-depends": []}
    (folder / "metadata.json").write_text(json.dumps({**about, "backend": {"type": "cpu"}}))
    return base / name


def checked(attention: str, machine: Any = MACHINE) -> Checked:
    return check(make_config("gpt2", {"attention": attention}), facts("gpt2"), machine, WORK)


def test_a_bare_name_is_taken_and_what_cannot_be_had_is_refused_with_the_reason() -> None:
    assert parse_arm("gpt2", f"attention={NAME}").choices == (("attention", f"hub:repository={NAME}"),)
    assert parse_arm("gpt2", "attention=kernels-community/flash-attn2").choices[0][1] == "kernels-community/flash-attn2"
    for wrong in ("some/../attn", "a/b/c", "some/attn;x=1"):
        with pytest.raises(InputError):
            parse_arm("gpt2", f"attention={wrong}")
    fine = checked(NAME)
    assert not fine.blocked and (fine.plan.load.attention, fine.plan.load.any_kernel) == (NAME, True)
    assert "LOCAL_KERNELS=org/name=/folder" in checked(f"{NAME}@main", replace(MACHINE, hub_kernels=())).refusal()
    assert "Write attention=org/name" in checked("hub").refusal()


@pytest.mark.parametrize(("mode", "runs"), [("local", True), ("team", False), ("public", False)])
def test_strangers_code_runs_in_local_mode_alone(mode: Any, runs: bool) -> None:
    request = Request("gpt2", [ArmRequest("A", {"attention": NAME})], WORK)
    limits = replace(LIMITS[mode], models=())
    if runs:
        check_allowed(request, facts("gpt2"), {"A": checked(NAME)}, MACHINE, limits)
    else:
        with pytest.raises(InputError, match="does not know"):
            check_allowed(request, facts("gpt2"), {"A": checked(NAME)}, MACHINE, limits)


def test_a_kernel_of_a_folder_is_loaded_called_and_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kernels")
    shape = {"model_type": "llama", "vocab_size": 300, "hidden_size": 32, "intermediate_size": 32, "dtype": "float32",
             "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "pad_token_id": 2}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(shape))
    folders = [f"{NAME}={package(tmp_path, 'attn', KERNEL)}", f"some/empty={package(tmp_path, 'empty', '')}"]
    norms = f"some/norms={ROOT / 'presets' / 'kernels' / 'rmsnorm'}"
    monkeypatch.setenv("LOCAL_KERNELS", ":".join([*folders, norms]))
    model = f"random:{tmp_path}"
    arm = check(make_config(model, {"attention": NAME}), resolve(model), MACHINE, WORK)
    finished = LocalWorker(arm.plan.load).run(Generate(arm.plan, SENTENCE, 0, 6, 1, 0.0, 0, True, True, prove=True))
    findings = {finding.axis: finding for finding in finished.findings}
    assert findings["attention"].effective == arm.planned["attention"] == f"hub:repository={NAME}"
    assert findings["tokens"].reached == findings["tokens"].expected == 6

    machine = replace(MACHINE, hub_kernels=("some/empty",))
    nothing = check(make_config(model, {"attention": "some/empty"}), resolve(model), machine, WORK)
    with pytest.raises(InputError, match="some/empty cannot be used as attention"):
        LocalWorker(nothing.plan.load)

    machine = replace(MACHINE, hub_kernels=("some/norms",))
    for layer, said in (("RMSNorm", "verified"), ("Other", "cannot be had: RMSNorm by some/norms:Other")):
        choice = f"mapping:RMSNorm=some/norms:{layer}"
        mapped = check(make_config(model, {"kernels": choice}), resolve(model), machine, WORK)
        assert not mapped.blocked
        if said != "verified":
            with pytest.raises(InputError, match=said):
                LocalWorker(mapped.plan.load)
            continue
        job = Generate(mapped.plan, SENTENCE, 0, 6, 1, 0.0, 0, True, True, prove=True)
        findings = {finding.axis: finding for finding in LocalWorker(mapped.plan.load).run(job).findings}
        assert findings["kernels"].effective == choice and findings["kernels"].reached == findings["kernels"].expected
