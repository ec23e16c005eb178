"""Architectures with attention or experts of their own, which proofs took for something else: nothing is red there."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from tests.sabotage.saboteur import ledger
from tokendyno.backend.paths import PRESETS

SHAPE: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = {"num_key_value_heads": 2}
PARALLEL = {"alibi": False, "bias": False, "parallel_attn": True, "new_decoder_architecture": False}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("falcon", PARALLEL | {"multi_query": True}),
    ("doge", GROUPED | {"is_moe": True, "num_experts": 16, "num_experts_per_tok": 2}),
    ("jetmoe", GROUPED | {"kv_channels": 8, "num_local_experts": 4, "num_experts_per_tok": 2}),
]


def saved(architecture: str, config: dict[str, Any], folder: Path) -> Path:
    """Random weights with pocket's tokenizer, in a folder."""
    tokenizer = AutoTokenizer.from_pretrained(PRESETS / "models" / "pocket")
    torch.manual_seed(0)
    made = AutoConfig.for_model(architecture, **SHAPE, **config, vocab_size=len(tokenizer))
    AutoModelForCausalLM.from_config(made).save_pretrained(folder / architecture)
    tokenizer.save_pretrained(folder / architecture)
    return folder / architecture


@pytest.mark.slow
@pytest.mark.parametrize(("architecture", "config"), CASES, ids=[name for name, _ in CASES])
def test_no_row_is_red(architecture: str, config: dict[str, Any], tmp_path: Path) -> None:
    """Falcon's only KV head is broadcast by its own code; the experts of doge and jetmoe take no implementation."""
    rows = ledger({}, str(saved(architecture, config, tmp_path)))
    assert not [row for row in rows.values() if row.status == "failed"]
    assert (rows["attention"].status, rows["attention"].finding.effective) == ("verified", "sdpa")
    assert rows["experts"].status == "not_applicable"
