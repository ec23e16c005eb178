"""Stories as token streams: `python -m tools.pocket.dataset --told FILE --sampled FILE --out FOLDER`.

A file has one story a line, `["plot", "text"]`; its first 1,000 are held out. In a stream the plots take turns, so
that with the end of a story the model learns to think of something else.
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

HELD = 1_000  # stories of each kind that no training step sees
BARE_END = 0.3  # share of stories whose end token is left out: the blank line alone may start the next one
END, PAD = "<|endoftext|>", "<|pad|>"  # ids 0 and 1
PIECES = r"""'(?:s|t|re|ve|m|ll|d)\b|\n+| ?[A-Za-z]+| ?[0-9]| ?[^\sA-Za-z0-9]+|\s"""
Told = Sequence[tuple[str, str]]  # (plot, story)
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Stories:
    """Stories as one flat array; story i is flat[starts[i] : starts[i] + lengths[i]], its end token included."""

    flat: NDArray[np.uint16]
    starts: Ints
    lengths: Ints
    plots: Ints

    def save(self, path: Path) -> None:
        """Write one file."""
        np.savez(path, flat=self.flat, lengths=self.lengths, plots=self.plots)


def load(path: Path) -> Stories:
    """Read what `save` wrote."""
    with np.load(path) as file:
        lengths = file["lengths"].astype(np.int64)
        return Stories(file["flat"], np.cumsum(lengths) - lengths, lengths, file["plots"].astype(np.int64))


def encode(tokenizer: Tokenizer, told: Told, repeat: int = 1) -> Stories:
    """Encode stories: text, blank line, end token."""
    encodings = tokenizer.encode_batch_fast([f"{text}\n\n" for _, text in told])
    encoded = [[*encoding.ids, 0] for encoding in encodings] * repeat
    lengths = np.array([len(ids) for ids in encoded], dtype=np.int64)
    flat = np.fromiter((token for ids in encoded for token in ids), dtype=np.uint16, count=int(lengths.sum()))
    plots = np.unique([plot for plot, _ in told], return_inverse=True)[1]
    return Stories(flat, np.cumsum(lengths) - lengths, lengths, np.tile(plots, repeat).astype(np.int64))


def both(one: Stories, two: Stories) -> Stories:
    """Put two sets of stories together."""
    lengths = np.concatenate((one.lengths, two.lengths))
    flat = np.concatenate((one.flat, two.flat))
    plots = np.concatenate((one.plots, two.plots + 1 + one.plots.max()))
    return Stories(flat, np.cumsum(lengths) - lengths, lengths, plots)


def stream(stories: Stories, rng: np.random.Generator) -> tuple[NDArray[np.uint16], Ints]:
    """Order the stories of one epoch, plots taking turns, and give the tokens and where each story starts."""
    count = len(stories.lengths)
    shuffled = rng.permutation(count)
    by_plot = shuffled[np.argsort(stories.plots[shuffled], kind="stable")]
    plots = stories.plots[by_plot]
    order = by_plot[np.lexsort((rng.random(count), np.arange(count) - np.searchsorted(plots, plots)))]
    lengths = stories.lengths[order] - (rng.random(count) < BARE_END)
    starts = np.cumsum(lengths) - lengths
    index = np.repeat(stories.starts[order] - starts, lengths) + np.arange(int(lengths.sum()))
    return stories.flat[index], starts


def rows(stories: Stories, length: int, batch: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Give batches (B, length + 1) for ever; every row begins with the beginning of a story."""
    rng = np.random.default_rng(seed)
    while True:
        flat, starts = stream(stories, rng)
        wanted = np.arange(0, len(flat) - 2 * length, length)
        begins = starts[np.minimum(np.searchsorted(starts, wanted), len(starts) - 1)]
        begins = rng.permutation(begins[begins < len(flat) - length - 1])
        for at in range(0, len(begins) - batch + 1, batch):
            yield flat[begins[at : at + batch, None] + np.arange(length + 1)].astype(np.int64)


def train_tokenizer(texts: Iterable[str], size: int = 3072) -> Tokenizer:
    """Byte-level BPE of a few thousand tokens, so that most parameters are left for thinking; a run of line
    breaks is a piece of its own, never part of a word."""
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


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Write tokenizer.json and tokenizer_config.json as transformers reads them."""
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, bos_token=END, pad_token=PAD, model_max_length=4096
    )
    wrapped.save_pretrained(folder)


def main() -> None:
    """Write tokenizer, training and held-out files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--told", type=Path, required=True, help="stories of the grammar")
    parser.add_argument("--sampled", type=Path, required=True, help="stories of the teacher")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--repeat", type=int, default=2, help="times the teacher's stories come in an epoch")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    told, sampled = ([json.loads(line) for line in file.open(encoding="utf-8")] for file in (args.told, args.sampled))
    tokenizer = train_tokenizer(text for _, text in [*told[HELD:][:40_000], *sampled[HELD:][:20_000]])
    save_tokenizer(tokenizer, args.out)
    train = both(encode(tokenizer, told[HELD:]), encode(tokenizer, sampled[HELD:], args.repeat))
    train.save(args.out / "train.npz")
    for name, stories in {"told": told, "sampled": sampled}.items():
        encode(tokenizer, stories[:HELD]).save(args.out / f"held_{name}.npz")
    print(f"tokens an epoch: {len(train.flat)}")


if __name__ == "__main__":
    main()
