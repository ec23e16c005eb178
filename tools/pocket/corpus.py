"""Sample stories from the teacher, clean them, and keep the ones it finds most likely.

python -m tools.pocket.corpus sample --teacher FOLDER --out raw.jsonl --seconds 240
python -m tools.pocket.corpus select --raw raw.jsonl --out stories.jsonl --keep 150000
"""

import argparse
import json
import random
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from tools.pocket.clean import clean
from tools.pocket.seeds import Seed, draw, prompt

SEED = 20_260


def batches(tokenizer: Any, size: int, rounds: int) -> list[list[tuple[list[int], Seed]]]:
    """Group prompts by their token count, because a batch of one length needs no mask."""
    rng = random.Random(SEED)
    groups: dict[int, list[tuple[list[int], Seed]]] = defaultdict(list)
    full: list[list[tuple[list[int], Seed]]] = []
    while len(full) < rounds:
        seeds = [draw(rng) for _ in range(4 * size)]
        for ids, seed in zip(tokenizer([prompt(seed) for seed in seeds])["input_ids"], seeds, strict=True):
            group = groups[len(ids)]
            group.append((ids, seed))
            if len(group) == size:
                full.append(groups.pop(len(ids)))
    return full


def sample(folder: Path, out: Path, seconds: float, size: int, device: str) -> None:
    """Write raw stories, one JSON list a line: opener, answer, name, whether it ended, mean log-prob."""
    import torch

    from tools.pocket.teacher import Sampling, Teacher

    torch.manual_seed(SEED)
    teacher = Teacher(folder, device, Sampling())
    print("teacher loaded", flush=True)
    ready = batches(teacher.tokenizer, size, 8 if device == "cuda" else 1)
    end = int(teacher.kept[0])
    start, stories, tokens, turn = time.time(), 0, 0, 0
    with out.open("w", encoding="utf-8") as file:
        while time.time() - start < seconds:
            batch = ready[turn % len(ready)]
            ids, logps = teacher.sample(torch.tensor([ids for ids, _ in batch], device=device))
            lengths = (ids != end).sum(1)
            means = (logps.sum(1) / lengths.clamp(min=1)).tolist()
            rows = [row[:length] for row, length in zip(ids.tolist(), lengths.tolist(), strict=True)]
            texts = teacher.tokenizer.batch_decode(rows)
            for text, row, mean, (_, seed) in zip(texts, rows, means, batch, strict=True):
                ended = len(row) < ids.shape[1]
                file.write(json.dumps([seed.opener, text, seed.name, ended, round(mean, 3)]) + "\n")
            turn, stories, tokens = turn + 1, stories + len(rows), tokens + int(lengths.sum())
            print(f"round {turn} s {time.time() - start:.0f} stories {stories} tokens {tokens}", flush=True)


def judge(line: str) -> tuple[float, str] | None:
    """Clean one raw story; give it with its mean log-prob."""
    opener, answer, name, ended, mean = json.loads(line)
    text = clean(opener, answer, name, ended, hash_of(answer))
    return None if text is None else (mean, text)


def hash_of(text: str) -> int:
    """Give a number for a text that is the same in every process."""
    return sum(ord(char) * (at % 97 + 1) for at, char in enumerate(text))


def select(raw: Path, out: Path, keep: int) -> None:
    """Drop doubles and weak stories, then keep those that the teacher itself finds most likely."""
    lines = raw.read_text(encoding="utf-8").splitlines()
    with ProcessPoolExecutor() as pool:
        judged = [found for found in pool.map(judge, lines, chunksize=512) if found]
    seen: set[str] = set()
    unique: list[tuple[float, str]] = []
    for mean, text in judged:
        middle = text[len(text) // 3 : len(text) // 3 + 60]
        if middle not in seen:
            seen.add(middle)
            unique.append((mean, text))
    unique.sort(reverse=True)
    chosen = [text for _, text in unique[:keep]]
    random.Random(SEED).shuffle(chosen)
    with out.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(text) + "\n" for text in chosen)
    worst = unique[:keep][-1][0] if unique else 0.0
    print(f"raw {len(lines)} clean {len(judged)} unique {len(unique)} kept {len(chosen)} worst log-prob {worst}")


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    tasks = parser.add_subparsers(dest="task", required=True)
    one = tasks.add_parser("sample")
    one.add_argument("--teacher", type=Path, required=True)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--seconds", type=float, default=240)
    one.add_argument("--batch", type=int, default=8192)
    one.add_argument("--device", default="cuda")
    two = tasks.add_parser("select")
    two.add_argument("--raw", type=Path, required=True)
    two.add_argument("--out", type=Path, required=True)
    two.add_argument("--keep", type=int, default=150_000)
    args = parser.parse_args()
    if args.task == "sample":
        sample(args.teacher, args.out, args.seconds, args.batch, args.device)
    else:
        select(args.raw, args.out, args.keep)


if __name__ == "__main__":
    main()
