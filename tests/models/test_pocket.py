"""The embedded model is the one that was measured, and it speaks without a network."""

import hashlib
import json
import math
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


@cache
def perplexity(name: str) -> float:
    """Perplexity of the stored held-out stories, joined as in training."""
    stories = (HERE / "pocket_heldout.txt").read_text(encoding="utf-8").strip().split("\n\n")
    ids = torch.tensor([[token for text in stories for token in [*tokenizer()(text + "\n\n")["input_ids"], 0]]])
    with torch.inference_mode():
        logits = model(name)(ids[:, :-1]).logits
    return math.exp(float(torch.nn.functional.cross_entropy(logits[0].float(), ids[0, 1:])))


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


@pytest.mark.slow
def test_perplexity_stays_below_the_bound() -> None:
    assert perplexity("pocket") < STORED["perplexity_bound"]


@pytest.mark.slow
def test_mxfp4_checkpoint_holds_blocks_and_costs_little() -> None:
    from safetensors import safe_open

    with safe_open(MODELS / "pocket-mxfp4" / "model.safetensors", framework="pt") as file:
        names = set(file.keys())
    assert sum(name.endswith("_blocks") for name in names) == sum(name.endswith("_scales") for name in names) == 16
    settings = json.loads((MODELS / "pocket-mxfp4" / "config.json").read_text(encoding="utf-8"))
    assert settings["quantization_config"]["quant_method"] == "mxfp4"
    ratio = perplexity("pocket-mxfp4") / perplexity("pocket")
    assert 1.0 < ratio < STORED["mxfp4_ratio_bound"]


def test_tokenizer_gives_back_what_it_took() -> None:
    text = '"Where is my hat?" asked Zaro.\nIt wasn\'t there.\n\nThe end.'
    assert tokenizer().decode(tokenizer()(text)["input_ids"]) == text
    assert (tokenizer().eos_token_id, tokenizer().pad_token_id) == (0, 1)
