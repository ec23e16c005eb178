"""Models with random weights at their real shape, and a tokenizer for them: no download."""

from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoConfig, PreTrainedTokenizerFast

from tokendyno.backend.models.files.config_fields import decode_config
from tokendyno.backend.plan import RANDOM_SEED
from tokendyno.backend.worker.load.auto_class import auto_class
from tokendyno.backend.worker.load.unread import reading
from tokendyno.backend.worker.load.words import word_of

_STD = 0.02
"""Of parameters that nothing else draws: transformers' usual one."""


def random_model(config_json: str, dtype: str, attention: str | None, device: str) -> Any:
    """A model of the architecture in `config_json` (the text of a config.json), with random weights on `device`."""
    return initialize(empty_model(config_json, dtype, attention), device)


def empty_model(config_json: str, dtype: str, attention: str | None) -> Any:
    """The architecture on the meta device: no memory yet."""
    values = decode_config(config_json)
    with reading("config (config.json)"):
        config = AutoConfig.for_model(values.pop("model_type"), **values)
    torch_dtype = getattr(torch, dtype if dtype != "auto" else _config_dtype(config))
    build = auto_class(config.model_type).from_config
    with torch.device("meta"):
        try:
            return build(config, dtype=torch_dtype, attn_implementation=attention)
        except Exception:
            with reading("config (config.json)"):  # whether it fails without what the arm chose
                build(AutoConfig.for_model(**decode_config(config_json)), dtype=torch_dtype)
            raise


def initialize(model: Any, device: str) -> Any:
    """Allocate a model of the meta device on `device` and fill it by the model's own initialization.

    The weights are the same for the same seed, device and version of torch. What that initialization leaves out, as it
    does the routers of ERNIE 4.5, would hold whatever lies in memory: such parameters are drawn, buffers are zero.
    """
    model.to_empty(device=device)
    unset = [one for one in (*model.parameters(), *model.buffers()) if one.is_floating_point() and one.numel()]
    unset = [] if device == "meta" else unset
    with torch.no_grad():
        for tensor in unset:
            tensor[(0,) * tensor.ndim] = torch.nan
        torch.manual_seed(RANDOM_SEED)
        model.tie_weights()
        model.initialize_weights()
        model.tie_weights()
        for tensor in unset:
            if tensor[(0,) * tensor.ndim].isnan().item():
                tensor.normal_(0, _STD) if isinstance(tensor, torch.nn.Parameter) else tensor.zero_()
    return model


def _config_dtype(config: Any) -> str:
    return str(config.dtype or "bfloat16").removeprefix("torch.")


def byte_tokenizer(vocab_size: int) -> PreTrainedTokenizerFast:
    """One token per byte; every further id of the vocabulary decodes to a word of its own.

    A random model predicts any id: this way equal ids give equal text, different ids different text, and a race of two
    texts can be followed. A prompt is encoded as bytes, whatever its words.
    """
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    if vocab_size < len(letters) + 1:
        raise ValueError(f"A byte-level tokenizer needs {len(letters) + 1} ids, the model has {vocab_size}.")
    vocab = {letter: i for i, letter in enumerate(letters)}
    for i in range(len(vocab), vocab_size - 1):
        vocab[f"Ġ{word_of(i - len(letters))}"] = i
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|end|>")
