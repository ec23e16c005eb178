"""Searches for the fastest captured step by changing one setting at a time.

    python -m tools.bench.gpu.sweep [--model random:Qwen3-0.6B] [--ranks 1] [--quantization torchao-int8]
        [--seconds 90] [--json FILE]

Each change is tried within the real step of the custom loop, on top of the changes kept so far: with programmatic
dependent launch a kernel waits on the same multiprocessor as its predecessor, so the resources that one leaves free
decide how early the next can start. A change that is faster twice is kept. Tried are the tile sizes of attention, the
amount of weights prefetched into L2, and the configuration of each matrix product, with and without a register limit.
The result is pasted into `attention`, `ops`, `products.config` and `tiles.config`.
"""

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import Any

import torch

from tools.bench.gpu.step_profile import Bed

Shape = tuple[int, int, float, bool]  # rows, columns, bytes per element (0.5: tiles of 4 bits), gated
ROUNDS, STEPS = 3, 120
ONCE = 1 << 30
CUTS = ((8192, 4), (4096, 4), (4096, 2), (16384, 8))  # numbers of keys per iteration and warps of attention
FEW = ((64, 4), (128, 8), (64, 2), (128, 4), (256, 8), (64, 8), (256, 16))  # slots and warps of that for few queries
ASKED = (0, 13 << 20, 20 << 20)  # bytes prefetched; of Qwen3-0.6B: nothing, gate and up, these and down
REGISTERS = (None, 80, 64)  # maximum per thread
_SHARED_BYTES = 200_000
_MOST_ROWS = 1 << 15  # larger output layers are purely memory-bound
_GAIN = 0.997  # of the previous time; a smaller gain is noise
_ANEW = 6  # number of changes after which the current state is measured again


def configurations(shape: Shape) -> list[dict[str, int]]:
    """Candidates, the most promising first: whole rows per program, then persistent programs, rows that wait in shared
    memory, of longer rows tiles, of 8 and 4 bits tensor cores."""
    rows, columns, item, gated = shape
    at_once = 2 if gated else 1

    def each(numbers: int, warps: int) -> int:
        """Matrix elements per thread."""
        return numbers * at_once // (32 * warps)

    whole = [
        {"BN": many, "STAGES": 1, "CTAS": ONCE, "num_warps": warps} | ({"maxnreg": limit} if limit else {})
        for limit, many, warps in itertools.product(REGISTERS, (2, 4, 8, 1, 16), (4, 2, 8, 1))
        if 16 <= each(many * columns, warps) <= 64 and not (limit and each(many * columns, warps) < 32)
    ]
    staying = [
        {"BN": many, "STAGES": 3, "CTAS": programs, "num_warps": warps}
        for programs, many, warps in itertools.product((264, 528), (2, 4), (4, 8))
        if 8 <= each(many * columns, warps) <= 32
        and rows > 2 * programs * many
        and many * columns * item * at_once * 3 < _SHARED_BYTES
    ]
    waiting = [
        {"ROWS": many, "num_warps": warps}
        for many, warps in itertools.product((2, 1, 4), (4, 8, 2))
        if columns % 128 == 0 and item == 2 and many * warps * columns * item * at_once < _SHARED_BYTES
    ]
    tiles = [
        {"BN": many, "BK": 512, "STAGES": 6, "AHEAD": ahead, "num_warps": warps}
        for ahead, many, warps in itertools.product((1024, 512), (4, 2, 8), (2, 4))
        if columns >= 2048 and item == 2
    ]
    kinds = [on_cores(shape)] if item < 1 else [whole, staying, waiting, tiles, on_cores(shape)]
    return [one for some in itertools.zip_longest(*kinds) for one in some if one is not None]


def on_cores(shape: Shape) -> list[dict[str, int]]:
    """Candidates of tensor cores, those that ask for the most at once first; none for dense rows."""
    rows, columns, item, gated = shape
    found = []
    for warps, chunks, depth, programs in itertools.product((8, 4), (4, 2, 1, 8), (2, 3, 4, 1, 6, 8), (264, 132, ONCE)):
        width, tiles = int(128 * warps * chunks / item), -(-rows // 16)  # columns of a part, tiles of 16 rows
        if item > 1 or columns % width or (programs < ONCE and programs > tiles):
            continue
        turns = -(-tiles // min(programs, tiles)) * columns // width
        held = depth * 16 * (2 if gated else 1) * width * item + 4 * columns  # bytes of weights, and of the vector
        together = programs // 132 if programs < ONCE else 1
        if depth <= turns and (depth > 1 or turns == 1) and held * together < _SHARED_BYTES:
            found.append({"CHUNKS": chunks, "DEPTH": depth, "CTAS": programs, "num_warps": warps})
    return sorted(found, key=lambda how: -how["DEPTH"] * how["CHUNKS"] * how["num_warps"])


class Descent:
    """The current step, and the changes that led to it."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._products, self._attention = (bed.module("tokendyno-matvec", name) for name in ("products", "attention"))
        self._ops, self._few = (bed.module("tokendyno-matvec", name) for name in ("ops", "by_warps"))
        config = bed.model.config
        heads = config.num_attention_heads
        self._size = getattr(config, "head_dim", None) or config.hidden_size // heads
        self._group = heads // (getattr(config, "num_key_value_heads", None) or heads)
        self._own, of_tiles = self._products.config, bed.module("tokendyno-matvec", "tiles")
        own_tiles = of_tiles.config
        self._products.config = self._config
        of_tiles.config = lambda rows, columns, gated: self._config(rows, columns, 0.5, gated)
        plain = self._own
        self._own = lambda *shape: own_tiles(*shape[:2], shape[3]) if shape[2] < 1 else plain(*shape)
        self.shapes: list[Shape] = []
        self.state: dict[Any, Any] = {
            "attention": (self._attention.NUMBERS, self._attention.WARPS),
            "asked": self._ops.MAX_PREFETCH_BYTES,
            "few queries": self._few.BLOCKS.get(self._size),
        }
        self.first_s = self.best_s = self.token_s(self.state)
        for shape in self.shapes:
            self.state[shape] = self._own(*shape)
        self.tried: list[tuple[str, str, float]] = []

    def _config(self, rows: int, columns: int, item: float, gated: bool) -> dict[str, int]:
        shape = (rows, columns, item, gated)
        if shape not in self.shapes:
            self.shapes.append(shape)
        how: dict[str, int] = self._now.get(shape) or self._own(*shape)
        return how

    def token_s(self, state: dict[Any, Any]) -> float:
        """Seconds per token with the settings of `state`."""
        self._now = state
        self._attention.NUMBERS, self._attention.WARPS = state["attention"]
        if state["few queries"]:
            self._few.BLOCKS[self._size] = state["few queries"]
        self._ops.MAX_PREFETCH_BYTES = state["asked"]
        return self._bed.token_s(ROUNDS, STEPS)

    def candidates(self) -> list[tuple[Any, Any]]:
        """(setting, value) pairs, alternating between the settings."""
        few = self._few.fits(self._group, self._size)
        each: list[list[tuple[Any, Any]]] = [[("asked", most) for most in ASKED]]
        each += [[("few queries", cut) for cut in FEW] if few else [("attention", cut) for cut in CUTS]]
        each += [[(shape, how) for how in configurations(shape)] for shape in self.shapes if shape[0] < _MOST_ROWS]
        return [one for some in itertools.zip_longest(*each) for one in some if one is not None]

    def attempt(self, what: Any, how: Any) -> None:
        """Keep the change if it is faster twice; the second time against the previous state, measured again."""
        if self.state[what] == how:
            return
        if len(self.tried) % _ANEW == 0:  # clocks and temperature drift
            self.best_s = self.token_s(self.state)
        new = {**self.state, what: how}
        try:
            took_s = self.token_s(new)
        except Exception as problem:  # one that does not compile or fit is reported and skipped
            print(f"{what} {how}: {type(problem).__name__}: {str(problem)[:100]}", flush=True)
            return
        self.tried.append((str(what), str(how), took_s))
        if took_s > _GAIN * self.best_s:
            return
        pairs = [(self.token_s(self.state), self.token_s(new)) for _ in range(2)]
        before_s, again_s = (sum(times) / len(times) for times in zip(*pairs, strict=True))
        if again_s < _GAIN * before_s:
            self.state, self.best_s = new, again_s
            print(f"{1e3 * before_s:.4f} -> {1e3 * again_s:.4f} ms: {what} {how}", flush=True)
        else:
            self.best_s = before_s


def main() -> None:
    """Print the search and its result; write all trials as JSON with --json."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="random:Qwen3-0.6B")
    parser.add_argument("--places", type=int, default=1024)
    parser.add_argument("--ranks", type=int, default=1, help="sweep the part of one of so many ranks")
    parser.add_argument("--quantization", default="none")
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    until_s = time.monotonic() + given.seconds
    with torch.inference_mode():
        descent = Descent(Bed(given.model, given.places, given.ranks, given.quantization))
        print(f"{given.model}: {1e3 * descent.first_s:.4f} ms a token", flush=True)
        left = descent.candidates()
        for number, (what, how) in enumerate(left):
            if time.monotonic() > until_s:
                print(f"time is up: {len(left) - number} of {len(left)} changes were not tried")
                break
            descent.attempt(what, how)
        print(f"{1e3 * descent.token_s(descent.state):.4f} ms a token at the end:")
        for what, how in descent.state.items():
            print(f"  {what}: {how}")
    if given.json:
        found = {"model": given.model, "first_s": descent.first_s, "best_s": descent.best_s, "tried": descent.tried}
        given.json.write_text(json.dumps(found | {"state": [[str(k), v] for k, v in descent.state.items()]}))


if __name__ == "__main__":
    main()
