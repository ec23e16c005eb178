"""Fields of the wrong kind are refused from the config alone: each case is held against transformers."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.backend.models.test_rope import SMALL, said
from tokendyno.backend.errors import InputError
from tokendyno.backend.models import catalogue, resolve
from tokendyno.backend.models.described import describe
from tokendyno.backend.models.families import FAMILIES
from tokendyno.backend.models.kinds import KINDS, declared

HINTS = {
    "a whole number": ("int",),
    "a whole number or null": ("int | None",),
    "the id of a token, a list of ids or null": ("int | list[int] | None",),
    "a number with a decimal point": ("float",),
    "true or false": ("bool",),
    "a name": ("str",),
}
VALUES: list[Any] = ["</s>", "0", 0, 3, -1, 0.02, 1e-5, True, None, [], [1, 2], [1, "2"], [[1]], {}]


def config(name: str, **more: Any) -> dict[str, Any]:
    """The config of a small model."""
    small = {"n_embd": 32, "n_head": 4, "n_layer": 1, "n_positions": 64, "vocab_size": 32, "pad_token_id": 0}
    small = small if name == "gpt2" else SMALL
    experts = {"num_local_experts": 2, "num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16}
    return small | (experts if FAMILIES[name].moe else {}) | {"model_type": name} | more


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_kinds_are_those_that_transformers_declares() -> None:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    for name, family in FAMILIES.items():
        fields = CONFIG_MAPPING[name].__dataclass_fields__
        for field, kind in declared(family).items():
            hint = str(fields[field].type).replace("<class '", "").replace("'>", "")
            assert hint in HINTS[kind], (name, field)


def reads(given: dict[str, Any], folder: Path) -> bool:
    """Whether transformers reads this config, builds the model, and generates a token."""
    import torch
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

    (folder / "config.json").write_text(json.dumps(given))
    try:
        config = AutoConfig.from_pretrained(folder)
        if given["model_type"] == "bert":
            return bool(AutoModel.from_config(config)(torch.ones(1, 2, dtype=torch.int64)))
        model = AutoModelForCausalLM.from_config(config)
        return model.generate(torch.ones(1, 2, dtype=torch.int64), max_new_tokens=1) is not None
    except Exception:
        return False


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["llama", "bert"])
def test_what_is_refused_is_what_transformers_cannot_read(name: str, tmp_path: Path) -> None:
    for field, kind in declared(FAMILIES[name]).items():
        names = ["silu", *(value for value in VALUES if not isinstance(value, str))]  # of functions that there are
        for value in [None] if kind == "a whole number" else names if kind == "a name" else VALUES:
            given = config(name, **{field: value})
            assert (said(given) == "") is reads(given, tmp_path), (field, value, said(given))


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"eos_token_id": "</s>"}, "'eos_token_id' is '</s>'; the id of a token, a list of ids or null is needed"),
        ({"eos_token_id": [0, "</s>"]}, "'eos_token_id' is [0, '</s>']; the id of a token"),
        ({"bos_token_id": "<s>"}, "'bos_token_id' is '<s>'; a whole number or null is needed"),
        ({"pad_token_id": True}, "'pad_token_id' is True; a whole number or null is needed"),
        ({"pad_token_id": 32}, "'pad_token_id' is 32, and the vocabulary has 32 tokens"),
        ({"pad_token_id": -33}, "'pad_token_id' is -33, and the vocabulary has 32 tokens"),
        ({"rms_norm_eps": "1e-5"}, "'rms_norm_eps' is '1e-5'; a number with a decimal point is needed"),
        ({"hidden_act": None}, "'hidden_act' is None; a name is needed"),
        ({"tie_word_embeddings": None}, "'tie_word_embeddings' is None; true or false is needed"),
        ({"hidden_size": None}, "'hidden_size' is None; a whole number is needed"),
        ({"eos_token_id": [0, 1], "bos_token_id": -1, "pad_token_id": -32}, ""),
        ({"eos_token_id": [], "bos_token_id": None, "pad_token_id": None}, ""),
        ({"model_type": "gpt2", "pad_token_id": 10**6}, ""),
        ({"layer_norm_eps": "not a field of this architecture"}, ""),
    ],
)
def test_the_sentence_names_the_field_and_what_it_needs(change: dict[str, Any], part: str) -> None:
    reason = said(config(change.get("model_type", "llama"), **change))
    assert part in reason and bool(part) is bool(reason)
    assert not part or reason.startswith("config.json: ")


def test_every_architecture_of_the_table_and_of_the_catalogue_passes() -> None:
    for name in FAMILIES:
        assert said(config(name)) == ""
        with pytest.raises(InputError, match="'eos_token_id' is '</s>'"):
            describe(config(name, eos_token_id="</s>"), "config.json")
    for entry in catalogue():
        assert resolve(f"random:{entry.name}").layers
    assert set(KINDS) == set(HINTS)
