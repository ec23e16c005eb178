"""Train the model's own byte-level BPE: a few thousand tokens, so that most parameters are left for thinking."""

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

END, PAD = "<|endoftext|>", "<|pad|>"  # ids 0 and 1
PIECES = r"""'(?:s|t|re|ve|m|ll|d)\b|\n+| ?[A-Za-z]+| ?[0-9]| ?[^\sA-Za-z0-9]+|\s"""


def train(texts: Iterable[str], size: int = 3072) -> Tokenizer:
    """Train a tokenizer; a run of line breaks is a piece of its own, never part of a word."""
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(PIECES), behavior="isolated")
    spell = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, spell])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[END, PAD],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def save(tokenizer: Tokenizer, folder: Path) -> None:
    """Write tokenizer.json and tokenizer_config.json as transformers reads them."""
    from transformers import PreTrainedTokenizerFast

    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, bos_token=END, pad_token=PAD, model_max_length=4096
    )
    wrapped.save_pretrained(folder)
