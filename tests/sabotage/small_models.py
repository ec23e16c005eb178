"""Configs on disk of small models with random weights, for runs that want an architecture that pocket is not."""

import atexit
import functools
import json
import tempfile
from pathlib import Path
from typing import Any

LAYERS = 4
WINDOW = 128
"""Longer than the prompt of most runs here."""
_SHAPE: dict[str, Any] = {
    "vocab_size": 300,
    "hidden_size": 64,
    "intermediate_size": 48,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 2048,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
    "dtype": "float32",
}


@functools.cache
def _base() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="tokendyno-sabotage-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


@functools.cache
def _written(architecture: str, kind: str, **kwargs: Any) -> str:
    folder = _base() / f"{kind}{''.join(f'-{name}-{value}' for name, value in kwargs.items())}"
    folder.mkdir()
    config = {"model_type": architecture, "architectures": [kind]} | _SHAPE | kwargs
    (folder / "config.json").write_text(json.dumps(config))
    return f"random:{folder}"


def llama(**kwargs: Any) -> str:
    """Grouped heads, separate projections, no experts, no windows."""
    return _written("llama", "LlamaForCausalLM", **kwargs)


def long_llama() -> str:
    """The same for long prompts."""
    return llama(max_position_embeddings=8192)


def wide_llama() -> str:
    """The same with MLPs that every quantization packs."""
    return llama(intermediate_size=128)


def mistral(**kwargs: Any) -> str:
    """A window in every layer."""
    return _written("mistral", "MistralForCausalLM", **{"sliding_window": WINDOW} | kwargs)


def mixtral() -> str:
    """Four experts, two for each token, in every layer."""
    return _written("mixtral", "MixtralForCausalLM", num_local_experts=4, num_experts_per_tok=2)


def gpt_oss(**kwargs: Any) -> str:
    """Sinks, and eight experts of which each token has two."""
    return _written("gpt_oss", "GptOssForCausalLM", num_local_experts=8, num_experts_per_tok=2, **kwargs)


def bert(**kwargs: Any) -> str:
    """An encoder."""
    return _written("bert", "BertModel", type_vocab_size=2, initializer_range=0.2, **kwargs)
