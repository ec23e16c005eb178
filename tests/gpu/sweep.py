"""Which configuration of each product makes a whole captured step fastest: figures, not tests.

    python -m tests.gpu.sweep [--model random:Qwen3-0.6B] [--seconds 90] [--json FILE]

Every configuration is tried inside the step of the own loop as it runs in life, the other products as they are: all
layers' weights pass through L2 as they do there. First come the ways to cut attention and how many weights are asked
for in L2; the best of both stay for what follows. Printed are the best few of each product beside the present one, and
the step with all winners together, each to be pasted into `products.config`.
"""

import argparse
import itertools
import json
import time
from pathlib import Path

import torch

from tests.gpu.step_profile import Bed

Shape = tuple[int, int, int, bool]  # rows, columns, bytes of a number, gated
ROUNDS, STEPS, SHOWN = 3, 120, 4
ONCE = 1 << 30
_SHARED_BYTES = 200_000
_HEAD_CUTS = ((64, 8), (32, 8), (64, 4), (32, 4), (32, 2), (16, 2), (128, 8))  # others spill registers
_GROUP_CUTS = ((64, 4), (32, 4))
_ASKED = (0, 13 << 20, 20 << 20)  # of Qwen3-0.6B: nothing, gate and up, these and down


def configurations(shape: Shape) -> list[dict[str, int]]:
    """What may be worth a try, the likelier first: whole rows a program, then pieces of rows."""
    rows, columns, item, gated = shape
    at_once = 2 if gated else 1

    def each(numbers: int, warps: int) -> int:
        """Numbers of the matrix that a thread holds."""
        return numbers * at_once // (32 * warps)

    whole = [
        {"BN": many, "STAGES": 1, "CTAS": ONCE, "num_warps": warps}
        for many, warps in itertools.product((1, 2, 4, 8), (1, 2, 4, 8))
        if 8 <= each(many * columns, warps) <= 64
    ]
    staying = [
        {"BN": many, "STAGES": 3, "CTAS": programs, "num_warps": warps}
        for programs, many, warps in itertools.product((264, 528), (1, 2, 4), (4, 8))
        if 8 <= each(many * columns, warps) <= 32
        and rows > 2 * programs * many
        and many * columns * item * at_once * 3 < _SHARED_BYTES
    ]
    pieces = [
        {
            "BN": many,
            "BK": piece,
            "STAGES": 4 if piece < columns else 2,
            "AHEAD": min(1024, columns),
            "num_warps": warps,
        }
        for piece, many, warps in itertools.product((512, 1024), (1, 2, 4), (1, 2, 4))
        if piece <= columns and each(many * piece, warps) == (32 if gated else 16)
    ]
    together = itertools.zip_longest(whole, staying, pieces)
    return [one for some in together for one in some if one is not None]


class Sweep:
    """Times the step with `products.config` answering otherwise for chosen shapes."""

    def __init__(self, bed: Bed) -> None:
        self._bed, self._products = bed, bed.module("tokendyno-matvec", "products")
        self._own = self._products.config
        self.shapes: list[Shape] = []
        self._instead: dict[Shape, dict[str, int]] = {}
        self._products.config = self._config
        self.present_s = self.token_s({})

    def _config(self, rows: int, columns: int, item: int, gated: bool) -> dict[str, int]:
        shape = (rows, columns, item, gated)
        if shape not in self.shapes:
            self.shapes.append(shape)
        return self._instead.get(shape) or self.present(shape)

    def present(self, shape: Shape) -> dict[str, int]:
        how: dict[str, int] = self._own(*shape)
        return how

    def attention(self) -> list[tuple[float, bool, int, int]]:
        """(seconds a token, whether each query has its own programs, places in a turn, warps), the fastest first, which
        stays."""
        module = self._bed.module("tokendyno-matvec", "attention")
        apart, found = module.MOST_READ, []
        module.MOST_READ = 1 << 30
        for module.HEAD_BLOCK, module.HEAD_WARPS in _HEAD_CUTS:
            found.append((self.token_s({}), True, module.HEAD_BLOCK, module.HEAD_WARPS))
        module.MOST_READ = 0
        for module.BLOCK, module.WARPS in _GROUP_CUTS:
            found.append((self.token_s({}), False, module.BLOCK, module.WARPS))
        found.sort()
        module.HEAD_BLOCK, module.HEAD_WARPS = next((block, warps) for _, by_head, block, warps in found if by_head)
        module.BLOCK, module.WARPS = next((block, warps) for _, by_head, block, warps in found if not by_head)
        module.MOST_READ = max(apart, 1 << 20) if found[0][1] else 0
        return found

    def asked(self) -> list[tuple[float, int]]:
        """(seconds a token, bytes asked for in L2), the fastest first, which stays."""
        module, found = self._bed.module("tokendyno-matvec", "ops"), []
        for module.MOST_ASKED in _ASKED:
            found.append((self.token_s({}), module.MOST_ASKED))
        found.sort()
        module.MOST_ASKED = found[0][1]
        return found

    def token_s(self, instead: dict[Shape, dict[str, int]]) -> float:
        self._instead = instead
        return self._bed.token_s(ROUNDS, STEPS)


def main() -> None:
    """Print the tables; write them as JSON where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="random:Qwen3-0.6B")
    parser.add_argument("--places", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    until_s = time.monotonic() + given.seconds
    with torch.inference_mode():
        sweep = Sweep(Bed(given.model, given.places))
        print(
            f"{given.model}: {1e3 * sweep.present_s:.4f} ms a token at present; {len(sweep.shapes)} products",
            flush=True,
        )
        attention, asked = sweep.attention(), sweep.asked()
        for token_s, by_head, block, warps in attention:
            whose = "query" if by_head else "KV head"
            print(f"attention: {1e3 * token_s:.4f} ms a token: programs of a {whose}, {block} places, {warps} warps")
        for token_s, most in asked:
            print(f"asked for in L2: {1e3 * token_s:.4f} ms a token: up to {most >> 20} MiB", flush=True)
        found: dict[Shape, list[tuple[float, dict[str, int]]]] = {shape: [] for shape in sweep.shapes}
        tries = [[(shape, how) for how in configurations(shape)] for shape in sweep.shapes]
        left = [one for some in itertools.zip_longest(*tries) for one in some if one is not None]
        problems = 0
        for number, (shape, how) in enumerate(left):
            if time.monotonic() > until_s:
                print(f"time is up: {len(left) - number} of {len(left)} configurations were not tried")
                break
            try:
                found[shape].append((sweep.token_s({shape: how}), how))
            except Exception as problem:  # one that does not compile or fit is left out, and said
                problems += 1
                print(f"{shape} {how}: {type(problem).__name__}: {str(problem)[:100]}", flush=True)
        winners: dict[Shape, dict[str, int]] = {}
        present_s = sweep.token_s({})
        print(f"at present, once more: {1e3 * present_s:.4f} ms; {problems} configurations failed")
        for shape, rows in found.items():
            print(
                f"rows {shape[0]}, columns {shape[1]}, {shape[2]} bytes, gated {shape[3]}: now {sweep.present(shape)}"
            )
            for token_s, how in sorted(rows, key=lambda row: row[0])[:SHOWN]:
                print(f"    {1e6 * (token_s - present_s):+7.1f} us a token: {how}")
            best = min(rows, key=lambda row: row[0], default=None)
            if best is not None and best[0] < present_s:
                winners[shape] = best[1]
        print(f"all winners together: {1e3 * sweep.token_s(winners):.4f} ms a token, from {1e3 * present_s:.4f}")
    if given.json:
        tables = [{"shape": shape, "now": sweep.present(shape), "found": rows} for shape, rows in found.items()]
        given.json.write_text(
            json.dumps(
                {"model": given.model, "present_s": present_s, "tables": tables, "attention": attention, "asked": asked}
            )
        )


if __name__ == "__main__":
    main()
