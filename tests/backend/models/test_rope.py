"""Impossible rotary positions are refused from the config alone: each case is held against transformers, which builds
the model and runs it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.tiny_models import CONFIGS
from tokendyno.backend.errors import InputError
from tokendyno.backend.models import catalogue, obstacle, resolve
from tokendyno.backend.models.described import describe
from tokendyno.backend.models.families import FAMILIES

ROTARY = sorted(name for name, family in FAMILIES.items() if family.rope_sets != "none")
LONGER = 24
"""Tokens: more than the lengths that the cases below call original."""
SMALL: dict[str, Any] = {
    "vocab_size": 32, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64, "sliding_window": 8, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 2, "original_max_position_embeddings": 16,
}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 16}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 2.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
LONG = {
    "rope_type": "longrope",
    "short_factor": [1.0] * 4,
    "long_factor": [2.0] * 4,
    "original_max_position_embeddings": 16,
}


def without(given: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key != name}


SETS: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"rope_type": "default"}, True),
    ({"rope_type": "default", "rope_theta": 1e6}, True),
    ({"type": "linear", "factor": 2}, True),
    ({"rope_type": "linear", "factor": 0.5}, True),
    ({"rope_type": "linear", "factor": True}, True),  # read as 1
    ({"rope_type": "dynamic", "factor": 2.0}, True),
    (YARN, True),
    (YARN | {"factor": None}, True),
    (without(YARN, "original_max_position_embeddings"), True),
    (LLAMA3, True),
    (without(LLAMA3, "original_max_position_embeddings"), True),
    (LONG, True),
    (LONG | {"factor": 4.0, "attention_factor": 1.2}, True),
    ({"rope_type": "proportional", "rope_theta": 1e4}, True),
    ({"rope_type": "default", "factor": 0}, True),
    ({"rope_type": "lineal", "factor": 2.0}, False),
    ({"type": "su2", "factor": 2.0}, False),
    ({"rope_type": None}, False),
    ({"rope_type": ["linear"], "factor": 2.0}, False),
    ({"rope_type": "linear"}, False),
    ({"rope_type": "linear", "factor": None}, False),
    ({"rope_type": "linear", "factor": 0}, False),
    ({"rope_type": "linear", "factor": -2.0}, False),
    ({"rope_type": "linear", "factor": "2"}, False),
    ({"rope_type": "dynamic"}, False),
    (without(YARN, "factor"), False),
    (YARN | {"factor": 0}, False),
    (YARN | {"original_max_position_embeddings": 0}, False),
    (without(LLAMA3, "factor"), False),
    (without(LLAMA3, "low_freq_factor"), False),
    (without(LLAMA3, "high_freq_factor"), False),
    (LLAMA3 | {"factor": 0.0}, False),
    (LLAMA3 | {"low_freq_factor": 0}, False),
    (without(LONG, "long_factor"), False),
    (without(LONG, "short_factor"), False),
    (LONG | {"long_factor": [2.0] * 3}, False),
    (LONG | {"short_factor": [1.0] * 5}, False),
    (LONG | {"partial_rotary_factor": 0.5}, False),
    (LONG | {"long_factor": [2.0, 2.0, 0.0, 2.0]}, False),
    (LONG | {"long_factor": [2.0, 2.0, "2", 2.0]}, False),
    ({"rope_type": "default", "rope_theta": 0}, False),
    ({"rope_type": "default", "rope_theta": -1e4}, False),
    ({"rope_type": "default", "rope_theta": "1e4"}, False),
]
"""A set of parameters, and whether a model can have it."""

PHI3: list[tuple[dict[str, Any], bool]] = [
    (LONG | {"partial_rotary_factor": 0.5, "short_factor": [1, 1], "long_factor": [2, 2]}, True),
    (LONG | {"rope_type": "su"}, True),
    (without(LONG, "rope_type") | {"type": "yarn"}, True),
]
ONLY_PHI3 = ("default", "longrope")


def cases(name: str) -> list[tuple[dict[str, Any], bool]]:
    """The sets for an architecture."""
    if name != "phi3":
        return SETS
    return [(one, can and one.get("rope_type", one.get("type", "default")) in ONLY_PHI3) for one, can in SETS] + PHI3


def config(name: str, parameters: dict[str, Any], field: str = "rope_parameters") -> dict[str, Any]:
    """The config of a small model with these parameters for its layers that see everything."""
    each = FAMILIES[name].rope_sets == "each"
    if each and field == "rope_parameters":
        parameters = {"full_attention": parameters, "sliding_attention": {"rope_type": "default"}}
    experts = {"num_local_experts": 2, "num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16}
    mixed = {"layer_types": ["sliding_attention", "full_attention"]} if each else {}
    return SMALL | (experts if FAMILIES[name].moe else {}) | mixed | {"model_type": name, field: parameters}


def said(given: dict[str, Any]) -> str:
    """Why a config is refused; "" if it is not."""
    try:
        describe(given, "config.json")
    except InputError as error:
        return str(error)
    return ""


def runs(given: dict[str, Any], folder: Path) -> bool:
    """Whether transformers reads this config, builds the model, and its scores are numbers."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    (folder / "config.json").write_text(json.dumps(given))
    torch.manual_seed(0)
    try:
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder), dtype=torch.float32).eval()
        with torch.inference_mode():
            return bool(model(torch.arange(LONGER)[None] % 30).logits.isfinite().all())
    except Exception:
        return False


@pytest.mark.parametrize("name", ROTARY)
def test_impossible_parameters_are_refused_and_others_are_not(name: str) -> None:
    for parameters, can in cases(name):
        reason = said(config(name, parameters))
        assert bool(reason) is not can, (parameters, reason)
        assert can or reason.endswith(("Correct the file.", "original checkpoint.")), reason


def differing(name: str, field: str, folder: Path) -> list[dict[str, Any]]:
    """The sets that are refused and would run, or the other way round."""
    given = [(parameters, config(name, parameters, field)) for parameters, _ in cases(name)]
    return [parameters for parameters, one in given if bool(said(one)) is runs(one, folder)]


BACKWARDS = {"rope_type": "linear", "factor": -2.0}
"""Runs, and turns each position the wrong way: refused all the same."""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["phi3", "gemma3_text"])
def test_what_is_refused_is_what_transformers_cannot_run(name: str, tmp_path: Path) -> None:
    found = differing(name, "rope_parameters", tmp_path)
    assert found == ([] if name == "phi3" else [BACKWARDS])


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ROTARY)
def test_the_same_for_each_architecture_of_the_table(name: str, tmp_path: Path) -> None:
    for field in ("rope_scaling", "rope_parameters"):
        assert differing(name, field, tmp_path) == ([] if name == "phi3" else [BACKWARDS])


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"rope_theta": 0}, "'rope_theta' is 0; a number greater than 0 is needed"),
        ({"rope_theta": -1e4}, "'rope_theta' is -10000.0; a number greater than 0 is needed"),
        ({"rope_scaling": {"type": "ntk"}}, "'rope_type' is 'ntk'; one of default, linear, dynamic, yarn, longrope,"),
        ({"rope_scaling": {"rope_type": "yarn"}}, "rope_scaling has no 'factor', which rope_type 'yarn' needs"),
        ({"rope_parameters": LONG | {"long_factor": [1] * 3}}, "'long_factor' has 3 numbers; 4 are needed"),
        ({"rope_parameters": without(LONG, "long_factor")}, "has no 'long_factor', which rope_type 'longrope' needs"),
        ({"model_type": "gpt2", "rope_theta": 0}, ""),
        ({"model_type": "gemma3_text", "rope_scaling": {"type": "not read beside a default"}}, ""),
        ({"rope_scaling": None, "rope_parameters": None, "rope_theta": None}, ""),
    ],
)
def test_the_sentence_names_the_field_and_what_it_needs(change: dict[str, Any], part: str) -> None:
    reason = said(SMALL | {"model_type": "llama"} | change)
    assert part in reason and bool(part) is bool(reason)


def test_an_architecture_outside_the_table_is_asked_for_its_factors_only() -> None:
    falcon: dict[str, Any] = {"model_type": "falcon", "num_hidden_layers": 1}
    for name in ("rope_scaling", "rope_parameters"):
        for parameters in ({"rope_type": "linear", "factor": 0}, {"full_attention": {"factor": -1.0}}):
            assert "'factor' is" in said(falcon | {name: parameters})
            assert "'factor' is" in said({"model_type": "llava", "text_config": {name: parameters}})


def test_every_config_of_the_catalogue_and_of_the_tiny_models_passes() -> None:
    for entry in catalogue():
        for reference in (entry.name, f"random:{entry.name}"):
            assert resolve(reference).layers
        if entry.folder is not None:
            assert obstacle(resolve(entry.name), offline=True) == ""
    for name, given in CONFIGS.items():
        assert said(given | {"model_type": name}) == ""
