"""A config.json is read as transformers reads it, numbers that are no JSON included."""

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tokendyno.backend.models.files.config_fields import decode_config, encode_config, parse_json

TEXTS = [
    '{"a": [0.0, Infinity], "b": {"c": -Infinity}, "d": 1e999}',
    '{"a": [0.0, {"__float__": "Infinity"}], "b": {"c": {"__float__": "-Infinity"}}}',
    '{"a": {"__float__": "many"}, "b": {"__float__": 1}, "c": {"__float__": "NaN", "more": 1}}',
    '{"__float__": "x", "a": {"b": {"__float__": "Infinity"}}, "a": 1}',
    '{"a": "\\ud800", "b": 123456789012345678901234567890}',
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_config_has_the_values_that_transformers_gives_it(text: str, tmp_path: Path) -> None:
    from transformers import PreTrainedConfig

    (tmp_path / "config.json").write_text(text)
    config = parse_json(text.encode(), "config.json")
    assert config == PreTrainedConfig._dict_from_json_file(tmp_path / "config.json")
    written = encode_config(config)
    assert decode_config(written) == config and msgspec.json.decode(written.replace("\\ud800", "")) is not None


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": {"__float__": "NaN"}}'])
def test_what_is_not_a_number_is_read_and_written_with_its_tag(text: str) -> None:
    config = parse_json(text.encode(), "config.json")
    assert math.isnan(config["a"]) and encode_config(config) == '{"a": {"__float__": "NaN"}}'


GRANITE: dict[str, Any] = {
    "model_type": "granitemoehybrid",
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "vocab_size": 300,
    "layer_types": ["mamba"],
    "num_local_experts": 0,
    "shared_intermediate_size": 32,
    "mamba_n_heads": 4,
    "mamba_d_head": 16,
}


@pytest.mark.slow
def test_models_are_built_of_the_numbers_that_a_config_s_tags_stand_for() -> None:
    """Where weights are drawn, and where it is counted."""
    from tokendyno.backend.counter.model import read_config
    from tokendyno.backend.worker.load.random_weights import empty_model

    text = encode_config(GRANITE | {"time_step_limit": [0.0, math.inf]})
    built = (empty_model(text, "float32", None).config, read_config(decode_config(text)))
    assert [tuple(config.time_step_limit) for config in built] == [(0.0, math.inf)] * 2
