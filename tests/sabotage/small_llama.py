"""Llama in small, without a sliding window: one graph for all lengths, which is compiled in seconds."""

import functools
import json
import tempfile
from pathlib import Path

LAYERS = 4
_CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 300, "hidden_size": 32,
    "intermediate_size": 32, "num_hidden_layers": LAYERS, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 8, "max_position_embeddings": 1024, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2,
    "dtype": "float32",
}  # fmt: skip


@functools.cache
def small_llama() -> str:
    """The name of a model with random weights; its config is written once for each process."""
    folder = Path(tempfile.mkdtemp(prefix="small-llama-"))
    (folder / "config.json").write_text(json.dumps(_CONFIG))
    return f"random:{folder}"
