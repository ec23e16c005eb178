"""The embedded model is the one that was measured, and it speaks without a network."""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

HERE = Path(__file__).parent
MODELS = HERE.parents[1] / "presets" / "models"
STORED = json.loads((HERE / "pocket_stored.json").read_text(encoding="utf-8"))
LIMIT_BYTES = 10_000_000
NAMES = ("pocket", "pocket-mxfp4")


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading may read the folder and nothing else."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@cache
def model(name: str) -> Any:
    """Load a model in float32, where an argmax does not hang on the rounding of one kind of CPU."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(MODELS / name, dtype=torch.float32, local_files_only=True).eval()


@cache
def tokenizer() -> Any:
    """Load the tokenizer."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(MODELS / "pocket", local_files_only=True)


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_the_ones_that_were_measured(name: str) -> None:
    content = (MODELS / name / "model.safetensors").read_bytes()
    assert hashlib.sha256(content).hexdigest() == STORED["sha256"][name]
    assert len(content) < LIMIT_BYTES


def test_shape_shows_what_the_app_demonstrates() -> None:
    config = model("pocket").config
    assert type(model("pocket")).__name__ == "GptOssForCausalLM"
    assert config.sliding_window == 128
    assert set(config.layer_types) == {"sliding_attention", "full_attention"}
    assert config.max_position_embeddings >= 4096
    assert (config.num_local_experts, config.num_experts_per_tok) == (8, 2)
    assert all(layer.self_attn.sinks.abs().max() > 0 for layer in model("pocket").model.layers)


def test_greedy_text_is_the_stored_text() -> None:
    encoded = tokenizer()(STORED["prompt"], return_tensors="pt")
    with torch.inference_mode():
        ids = model("pocket").generate(
            encoded["input_ids"], attention_mask=encoded["attention_mask"], max_new_tokens=60, do_sample=False
        )
    assert tokenizer().decode(ids[0]) == STORED["greedy"]


def test_tokenizer_gives_back_what_it_took() -> None:
    text = '"Where is my hat?" asked Zaro.\nIt wasn\'t there.\n\nThe end.'
    assert tokenizer().decode(tokenizer()(text)["input_ids"]) == text
    assert (tokenizer().eos_token_id, tokenizer().pad_token_id) == (0, 1)
