"""Turn stories into token streams.

    python -m tools.pocket.dataset --teacher stories.jsonl --out FOLDER --grammar 600000

A stream never tells two stories of the same hero in a row: with the end of a story the model learns to think of
somebody else, and long texts do not come round to their beginning.
"""

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tools.pocket import tokenizer as bpe
from tools.pocket.clean import words
from tools.pocket.grammar import BOYS, GIRLS, story

SEED = 20_261
HELD = 1_000  # stories of each kind that no training step sees
RARE = 8  # a story of the teacher with a word that fewer stories use is dropped
BARE_END = 0.3  # share of stories whose end token is left out: the blank line alone may start the next one
NAMES = re.compile(r"\b(?:" + "|".join(GIRLS + BOYS) + r")\b")
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Stories:
    """Stories as one flat array; story i is flat[starts[i] : starts[i] + lengths[i]], its end token included."""

    flat: NDArray[np.uint16]
    starts: Ints
    lengths: Ints
    heroes: Ints

    def save(self, path: Path) -> None:
        """Write one compressed file."""
        np.savez_compressed(path, flat=self.flat, lengths=self.lengths, heroes=self.heroes)


def load(path: Path) -> Stories:
    """Read what `save` wrote."""
    with np.load(path) as file:
        lengths = file["lengths"].astype(np.int64)
        return Stories(file["flat"], np.cumsum(lengths) - lengths, lengths, file["heroes"].astype(np.int64))


def tell(block: int) -> list[str]:
    """Tell a block of stories from the grammar; negative blocks are the held-out ones."""
    rng = random.Random(SEED * 1_000_003 + block)
    return [story(rng) for _ in range(HELD)]


def grammar(count: int) -> tuple[list[str], list[str]]:
    """Give held-out and training stories without doubles."""
    held = list(dict.fromkeys(tell(-1)))
    with ProcessPoolExecutor() as pool:
        told = [text for block in pool.map(tell, range(count // HELD), chunksize=4) for text in block]
    unique = dict.fromkeys(told)
    for text in held:
        unique.pop(text, None)
    return held, list(unique)


def sampled(path: Path) -> tuple[list[str], list[str]]:
    """Read the teacher's stories without those that use rare words, the held-out ones first."""
    texts: list[str] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    counts = Counter(word for text in texts for word in set(words(text)))
    texts = [text for text in texts if min(counts[word] for word in words(text)) >= RARE]
    return texts[:HELD], texts[HELD:]


def encode(tokenizer: bpe.Tokenizer, texts: Sequence[str]) -> Stories:
    """Encode stories: text, blank line, end token."""
    encoded = [found.ids + [0] for found in tokenizer.encode_batch_fast([text + "\n\n" for text in texts])]
    lengths = np.array([len(ids) for ids in encoded], dtype=np.int64)
    flat = np.fromiter((token for ids in encoded for token in ids), dtype=np.uint16, count=int(lengths.sum()))
    places = {name: index for index, name in enumerate(GIRLS + BOYS)}
    found = (NAMES.search(text) for text in texts)
    heroes = np.array([places[match.group()] if match else 0 for match in found], dtype=np.int64)
    return Stories(flat, np.cumsum(lengths) - lengths, lengths, heroes)


def stream(stories: Stories, rng: np.random.Generator) -> tuple[NDArray[np.uint16], Ints]:
    """Order the stories of one epoch, heroes taking turns, and give the tokens and where each story starts."""
    count = len(stories.lengths)
    shuffled = rng.permutation(count)
    by_hero = shuffled[np.argsort(stories.heroes[shuffled], kind="stable")]
    heroes = stories.heroes[by_hero]
    first = np.searchsorted(heroes, heroes)
    order = by_hero[np.lexsort((rng.random(count), np.arange(count) - first))]
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
    parser.add_argument("--repeat", type=int, default=2, help="times the teacher's stories come in an epoch")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    held_told, told = grammar(args.grammar)
    held_sampled, given = sampled(args.teacher)
    tokenizer = bpe.train(told[:40_000] + given[:40_000])
    bpe.save(tokenizer, args.out)
    encode(tokenizer, told + given * args.repeat).save(args.out / "train.npz")
    for name, texts in {"told": held_told, "sampled": held_sampled}.items():
        encode(tokenizer, texts).save(args.out / f"held_{name}.npz")
        lines = "".join(json.dumps(text) + "\n" for text in texts)
        (args.out / f"held_{name}.jsonl").write_text(lines, encoding="utf-8")
    size = int(load(args.out / "train.npz").lengths.sum())
    print(f"told {len(told)} sampled {len(given)} tokens an epoch {size}")


if __name__ == "__main__":
    main()
