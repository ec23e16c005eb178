"""The table of architectures against transformers; a wrong or hostile config.json gives one sentence, quickly."""

import json
import time
from typing import Any

import pytest

from tokendyno.backend.errors import InputError
from tokendyno.backend.models.families import ENCODERS, FAMILIES, is_encoder
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
    [b"", b"{", b"3", b"\xff\xfe{}", b"[" * 1_000_000, b'{"a": nan}', b" " * (MAX_CONFIG_BYTES + 1)],
    ids=lambda data: repr(data[:8]),
)
def test_what_is_no_json_object_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match=r"^config\.json "):
        parse_json(data, "config.json")


@pytest.mark.parametrize("name", FAMILIES)
def test_a_config_that_says_nothing_has_the_defaults_of_its_class(name: str) -> None:
    from transformers import AutoConfig
    from transformers.cache_utils import get_layer_types_and_kwargs

    config: Any = AutoConfig.for_model(name)
    shape = read_shape({"model_type": name}, "config.json")
    heads = config.num_attention_heads
    assert shape.layers == config.num_hidden_layers
    assert shape.hidden == config.hidden_size
    assert shape.heads == heads
    assert shape.kv_heads == getattr(config, "num_key_value_heads", heads)
    assert shape.head_dim == (getattr(config, "head_dim", None) or config.hidden_size // heads)
    assert shape.vocab == config.vocab_size
    assert shape.max_positions == config.max_position_embeddings
    assert shape.tied == config.tie_word_embeddings
    assert shape.experts == getattr(config, "num_local_experts", getattr(config, "num_experts", 0))
    assert shape.experts_per_token == getattr(config, "num_experts_per_tok", 0)
    if name != "bert":
        kinds, arguments = get_layer_types_and_kwargs(config)
        assert [kind.split("_")[0] for kind in kinds] == list(shape.layer_kinds)
        assert {a["sliding_window"] for a in arguments if "sliding_window" in a} <= {shape.window}


@pytest.mark.parametrize("name", sorted(ENCODERS))
def test_an_encoder_without_a_row_is_an_encoder_with_berts_inputs(name: str) -> None:
    import inspect

    from transformers import MODEL_MAPPING, AutoConfig

    model = MODEL_MAPPING[type(AutoConfig.for_model(name))]
    assert {"input_ids", "attention_mask"} <= set(inspect.signature(model.forward).parameters)
    assert is_encoder(name) and name not in FAMILIES
    assert not is_encoder("llama") and not is_encoder("opt")


WINDOWS: list[tuple[dict[str, Any], str, int | None]] = [
    ({"model_type": "mistral", "sliding_window": 8}, "ssss", 8),
    ({"model_type": "mistral", "sliding_window": None}, "ffff", None),
    ({"model_type": "mistral"}, "ssss", 4096),
    ({"model_type": "mixtral", "sliding_window": 8}, "ssss", 8),
    ({"model_type": "llama"}, "ffff", None),
    ({"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}, "fsss", 8),
    ({"model_type": "qwen3", "use_sliding_window": True, "sliding_window": 8}, "ffff", None),
    ({"model_type": "qwen3_moe", "use_sliding_window": True, "sliding_window": 8}, "ssss", 8),
    ({"model_type": "smollm3", "use_sliding_window": True, "sliding_window": 8}, "fffs", 8),
    ({"model_type": "gemma2", "sliding_window": 8}, "sfsf", 8),
    ({"model_type": "gemma3_text", "sliding_window": 8, "sliding_window_pattern": 2}, "sfsf", 8),
    ({"model_type": "gpt_oss", "sliding_window": 8}, "sfsf", 8),
    ({"model_type": "olmo3", "sliding_window": 8}, "sssf", 8),
]


@pytest.mark.parametrize(("config", "kinds", "window"), WINDOWS)
def test_windows_follow_the_rules_of_each_class(config: dict[str, Any], kinds: str, window: int | None) -> None:
    from transformers import AutoConfig
    from transformers.cache_utils import get_layer_types_and_kwargs

    config = config | {"num_hidden_layers": 4}
    shape = read_shape(config, "config.json")
    assert "".join(kind[0] for kind in shape.layer_kinds) == kinds
    assert shape.window == window
    real, _ = get_layer_types_and_kwargs(AutoConfig.for_model(**config))
    assert "".join(kind[0] for kind in real) == kinds
