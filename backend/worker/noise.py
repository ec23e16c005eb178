"""Models with random weights at their real shape, and a tokenizer for them: no download."""

import json
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

SEED = 0


def random_model(config_json: str, dtype: str, attention: str | None, device: str) -> Any:
    """Build the architecture without memory, give it memory, and let its own initialisation fill it.

    `config_json`: a config.json as text. The weights are the same for the same seed, device and version.
    """
    values = json.loads(config_json)
    config = AutoConfig.for_model(values.pop("model_type"), **values)
    wanted = getattr(torch, dtype if dtype != "auto" else _own_dtype(config))
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=wanted, attn_implementation=attention)
    model.to_empty(device=device)
    torch.manual_seed(SEED)
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
