"""Models with random weights at their real shape, and a tokenizer for them: no download."""

import json
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoConfig, PreTrainedTokenizerFast

from backend.plan import RANDOM_SEED
from backend.worker.kinds import auto_class


def random_model(config_json: str, dtype: str, attention: str | None, device: str) -> Any:
    """Build the architecture without memory, give it memory, and let its own initialisation fill it.

    `config_json`: a config.json as text. The weights are the same for the same seed, device and version.
    """
    return filled(shell(config_json, dtype, attention), device)


def shell(config_json: str, dtype: str, attention: str | None) -> Any:
    """The architecture without memory."""
    values = json.loads(config_json)
    config = AutoConfig.for_model(values.pop("model_type"), **values)
    wanted = getattr(torch, dtype if dtype != "auto" else _own_dtype(config))
    with torch.device("meta"):
        return auto_class(config.model_type).from_config(config, dtype=wanted, attn_implementation=attention)


def filled(model: Any, device: str) -> Any:
    """The model with memory on that device, and its numbers in it."""
    model.to_empty(device=device)
    torch.manual_seed(RANDOM_SEED)
    model.tie_weights()
    model.initialize_weights()
    model.tie_weights()
    return model


def _own_dtype(config: Any) -> str:
    return str(config.dtype or "bfloat16").removeprefix("torch.")


def byte_tokenizer(vocab_size: int) -> PreTrainedTokenizerFast:
    """One token a byte; every further id of the model's vocabulary reads as its own number in hex.

    A random model picks any id: with this, equal ids give equal text and different ids differ.
    """
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    if vocab_size < len(letters) + 1:
        raise ValueError(f"A byte-level tokenizer needs {len(letters) + 1} ids, the model has {vocab_size}.")
    vocab = {letter: i for i, letter in enumerate(letters)}
    for i in range(len(vocab), vocab_size - 1):
        vocab[f"Ġ{i:x}"] = i
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|end|>")
