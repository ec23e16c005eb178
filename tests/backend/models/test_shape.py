"""A wrong or hostile config.json gives one sentence, never a traceback, and quickly."""

import json
import time
from typing import Any

import pytest

from tokendyno.backend.errors import InputError
from tokendyno.backend.models.files.config_fields import MAX_CONFIG_BYTES, parse_json
from tokendyno.backend.models.shape import read_shape

GOOD: dict[str, Any] = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 100,
    "max_position_embeddings": 128,
}

BAD: list[dict[str, Any]] = [
    {"model_type": None},
    {"model_type": "\x00"},
    {"num_hidden_layers": 10**9},
    {"num_hidden_layers": 0},
    {"num_hidden_layers": "32"},
    {"num_hidden_layers": True},
    {"num_attention_heads": -4},
    {"num_key_value_heads": 3},
    {"hidden_size": 65},
    {"hidden_size": 1 << 40},
    {"vocab_size": 0},
    {"tie_word_embeddings": "yes"},
    {"dtype": "int99"},
    {"torch_dtype": {"a": 1}},
    {"sliding_window": -1},
    {"sliding_window": "wide"},
    {"layer_types": ["full_attention"]},
    {"layer_types": "full_attention"},
    {"layer_types": ["full_attention", {"a": 1}]},
    {"layer_types": ["linear_attention", "full_attention"]},
    {"layer_types": ["sliding_attention", "full_attention"]},
    {"rope_parameters": {"partial_rotary_factor": "all"}},
    {"quantization_config": "mxfp4"},
    {"model_type": "gpt_oss", "num_local_experts": -1},
    {"model_type": "gpt_oss", "num_local_experts": 8, "num_experts_per_tok": 9},
    {"model_type": "qwen3_moe", "mlp_only_layers": 7},
    {"model_type": "qwen3_moe", "decoder_sparse_step": 0},
    {"attn_implementation": "someone/kernel"},
    {"experts_implementation": {"": "someone/kernel"}},
    {"text_config": {"attn_implementation": "someone/kernel"}},
    {"text_config": 7},
    {"model_type": "smollm3", "use_sliding_window": True, "sliding_window": 8, "no_rope_layer_interval": 0},
]


@pytest.mark.parametrize("change", BAD, ids=lambda change: json.dumps(change)[:60])
def test_a_bad_value_is_refused_in_one_short_sentence(change: dict[str, Any]) -> None:
    began = time.process_time()
    with pytest.raises(InputError) as error:
        read_shape(GOOD | change, "config.json")
    assert time.process_time() - began < 0.5
    said = str(error.value)
    assert said.startswith("config.json") and len(said) < 500 and said.isprintable()


def test_a_good_config_is_left_alone() -> None:
    shape = read_shape(GOOD, "config.json")
    assert (shape.layers, shape.kv_heads, shape.head_dim, shape.window) == (2, 2, 16, None)
    assert shape.dtype == ""


def test_extra_fields_are_left_alone() -> None:
    assert read_shape(GOOD | {"colour": "red", "auto_map": {"AutoModel": "x.Y"}}, "config.json").layers == 2


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"3",
        b"\xff\xfe{}",
        b"[" * 1_000_000,
        b'{"a": nan}',
        b" " * (MAX_CONFIG_BYTES + 1),
    ],
    ids=lambda data: repr(data[:8]),
)
def test_what_is_no_json_object_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match=r"^config\.json "):
        parse_json(data, "config.json")
