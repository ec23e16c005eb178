"""Turn stories into token streams.

    python -m tools.pocket.dataset --teacher stories.jsonl --out FOLDER --grammar 600000

In a stream the plots take turns, so that with the end of a story the model learns to think of something else, and
long texts do not come round to their beginning.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from tools.pocket import tokenizer as bpe
from tools.pocket.clean import words
from tools.pocket.grammar import ALL_PLOTS, story

SEED = 20_261
HELD = 1_000  # stories of each kind that no training step sees
RARE = 8  # a story of the teacher with a word that fewer stories use is dropped
BARE_END = 0.3  # share of stories whose end token is left out: the blank line alone may start the next one
MIN_WORDS = 80  # the teacher's shorter stories end before they begin
PLOT_IDS = {plot: index for index, plot in enumerate(ALL_PLOTS)}
Told = dict[str, int]  # story -> plot
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


def tell(block: int) -> list[tuple[str, str]]:
    """Tell a block of stories from the grammar; block -1 is the held-out one."""
    rng = random.Random(SEED * 1_000_003 + block)
    return [story(rng) for _ in range(HELD)]


def grammar(count: int) -> tuple[Told, Told]:
    """Give held-out and training stories without doubles."""
    held = {text: PLOT_IDS[plot] for plot, text in tell(-1)}
    with ProcessPoolExecutor() as pool:
        blocks = pool.map(tell, range(count // HELD), chunksize=4)
        told = {text: PLOT_IDS[plot] for block in blocks for plot, text in block}
    for text in held:
        told.pop(text, None)
    return held, told


def sampled(path: Path) -> tuple[Told, Told]:
    """Read the teacher's stories without short ones and rare words, the held-out ones first; two plots of their own."""
    texts: list[str] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    counts = Counter(word for text in texts for word in set(words(text)))
    split = [(text, words(text)) for text in texts]
    good = [text for text, found in split if len(found) >= MIN_WORDS and min(counts[word] for word in found) >= RARE]
    plots = {text: len(PLOT_IDS) + index % 2 for index, text in enumerate(good)}
    return {text: plots[text] for text in good[:HELD]}, {text: plots[text] for text in good[HELD:]}


def encode(tokenizer: Tokenizer, told: Told, repeat: int = 1) -> Stories:
    """Encode stories: text, blank line, end token."""
    encoded = [[*found.ids, 0] for found in tokenizer.encode_batch_fast([text + "\n\n" for text in told])] * repeat
    lengths = np.array([len(ids) for ids in encoded], dtype=np.int64)
    flat = np.fromiter((token for ids in encoded for token in ids), dtype=np.uint16, count=int(lengths.sum()))
    return Stories(flat, np.cumsum(lengths) - lengths, lengths, np.array([*told.values()] * repeat, dtype=np.int64))


def both(one: Stories, two: Stories) -> Stories:
    """Put two sets of stories together."""
    lengths = np.concatenate((one.lengths, two.lengths))
    flat, plots = np.concatenate((one.flat, two.flat)), np.concatenate((one.plots, two.plots))
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


def main() -> None:
    """Write tokenizer, training and held-out files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--grammar", type=int, default=600_000)
    parser.add_argument("--repeat", type=int, default=1, help="times the teacher's stories come in an epoch")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    held_told, told = grammar(args.grammar)
    held_sampled, given = sampled(args.teacher)
    tokenizer = bpe.train([*islice(told, 40_000), *islice(given, 20_000)])
    bpe.save(tokenizer, args.out)
    train = both(encode(tokenizer, told), encode(tokenizer, given, args.repeat))
    train.save(args.out / "train.npz")
    for name, texts in {"told": held_told, "sampled": held_sampled}.items():
        encode(tokenizer, texts).save(args.out / f"held_{name}.npz")
        lines = "".join(json.dumps(text) + "\n" for text in texts)
        (args.out / f"held_{name}.jsonl").write_text(lines, encoding="utf-8")
    print(f"told {len(told)} sampled {len(given)} tokens an epoch {len(train.flat)}")


if __name__ == "__main__":
    main()
