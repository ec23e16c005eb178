"""presets/models.toml: strict, complete, and accepted by transformers as it stands."""

import json
from pathlib import Path

import pytest

from tokendyno.backend.errors import InputError
from tokendyno.backend.models import DEFAULT_MODEL, CatalogueEntry, catalogue, resolve
from tokendyno.backend.models.catalogue import find, read_catalogue
from tokendyno.backend.models.families import FAMILIES

ROW = """
[[model]]
name = "a"
title = "A"
repo = "o/a"
kind = "decoder"
note = ""
sources = []
"""


def test_the_default_comes_first_and_each_entry_says_what_it_is() -> None:
    entries = catalogue()
    assert entries[0].name == DEFAULT_MODEL
    assert all(entry.sources and entry.note and entry.title for entry in entries)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("Qwen3-4B-Instruct-2507", 4_022_468_096),
        ("Llama-3-8B", 8_030_261_248),
        ("Llama-3-70B", 70_553_706_496),
        ("Olmo-3-7B", 7_298_011_136),
    ],
)
def test_the_published_totals_are_counted(name: str, parameters: int) -> None:
    facts = resolve(name)
    assert facts.parameters == parameters and facts.dtype == "bfloat16"
    assert resolve(f"random:{name}").parameters == parameters


def test_an_entry_is_found_by_name_and_by_hub_id_in_any_case() -> None:
    entry = find("LLAMA-3-8b")
    assert entry is not None and entry is find("meta-llama/meta-llama-3-8B")
    assert entry.gated
    assert find("") is None


@pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: entry.name)
def test_transformers_takes_each_config_and_agrees_on_every_layer(entry: CatalogueEntry) -> None:
    from transformers import AutoConfig
    from transformers.cache_utils import get_layer_types_and_kwargs

    config = AutoConfig.for_model(**json.loads(entry.config))
    facts, text = resolve(entry.name), config.get_text_config(decoder=True)
    assert (facts.hidden, facts.heads, facts.vocab) == (text.hidden_size, text.num_attention_heads, text.vocab_size)
    assert facts.max_positions == text.max_position_embeddings
    assert facts.dtype == str(config.dtype).removeprefix("torch.")
    if facts.architecture not in FAMILIES:
        return  # counted by transformers itself
    assert facts.layers == text.num_hidden_layers
    if facts.kind == "decoder":
        kinds, arguments = get_layer_types_and_kwargs(config)
        assert [kind.split("_")[0] for kind in kinds] == list(facts.layer_kinds)
        assert {a["sliding_window"] for a in arguments if "sliding_window" in a} <= {facts.window}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ROW.replace("title", "titel"), "titel"),
        (ROW + 'colour = "red"\n', "colour"),
        ("modell = []", "modell"),
        (ROW.replace('"decoder"', '"decodr"'), "kind"),
        (ROW + ROW.replace('"o/a"', '"o/b"'), "twice"),
        ("[[model]", "not valid TOML"),
        ("model = [3]", "model"),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "models.toml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_catalogue(path)
    assert said in str(error.value) and str(tmp_path) in str(error.value)


def test_a_right_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "models.toml"
    path.write_text(ROW)
    (entry,) = read_catalogue(path)
    assert (entry.name, entry.repo, entry.gated, entry.quantization) == ("a", "o/a", False, None)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_catalogue(tmp_path / "none.toml")
