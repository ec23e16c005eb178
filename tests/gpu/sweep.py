"""A way down to the fastest captured step, one change at a time: figures, not tests.

    python -m tests.gpu.sweep [--model random:Qwen3-0.6B] [--seconds 90] [--json FILE]

Each change is tried inside the step of the own loop as it runs in life, with all else as it stands by then: kernels
wait beside each other for their turn (programmatic dependent launch), so what one leaves free of a processor decides
how early the next can begin. A change that is faster twice stays. Tried are the cut of attention, how many weights are
asked for in L2, and each product's configuration, with registers limited and not; to be pasted into `attention`, `ops`
and `products.config`.
"""

import argparse
import itertools
import json
import time
from pathlib import Path
from typing import Any

import torch

from tests.gpu.step_profile import Bed

Shape = tuple[int, int, int, bool]  # rows, columns, bytes of a number, gated
ROUNDS, STEPS = 3, 120
ONCE = 1 << 30
CUTS = ((64, 4), (32, 4), (32, 2))  # places in a turn and warps of attention
ASKED = (0, 13 << 20, 20 << 20)  # bytes; of Qwen3-0.6B: nothing, gate and up, these and down
REGISTERS = (None, 80, 64)  # of a thread, at most
_SHARED_BYTES = 200_000
_MOST_ROWS = 1 << 15  # an output layer is bound by memory alone
_GAIN = 0.997  # of the time before: less is noise
_ANEW = 6  # changes after which the present state is measured again


def configurations(shape: Shape) -> list[dict[str, int]]:
    """What may be worth a try, the likelier first: whole rows a program, then programs that stay."""
    rows, columns, item, gated = shape
    at_once = 2 if gated else 1

    def each(numbers: int, warps: int) -> int:
        """Numbers of the matrix that a thread holds."""
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
    return whole + staying


class Descent:
    """The step as it stands, and what was changed to get there."""

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._products, self._attention = (bed.module("tokendyno-matvec", name) for name in ("products", "attention"))
        self._ops = bed.module("tokendyno-matvec", "ops")
        self._own = self._products.config
        self._products.config = self._config
        self.shapes: list[Shape] = []
        self.state: dict[Any, Any] = {
            "attention": (self._attention.BLOCK, self._attention.WARPS), "asked": self._ops.MOST_ASKED,
        }  # fmt: skip
        self.first_s = self.best_s = self.token_s(self.state)
        for shape in self.shapes:
            self.state[shape] = self._own(*shape)
        self.tried: list[tuple[str, str, float]] = []

    def _config(self, rows: int, columns: int, item: int, gated: bool) -> dict[str, int]:
        shape = (rows, columns, item, gated)
        if shape not in self.shapes:
            self.shapes.append(shape)
        how: dict[str, int] = self._now.get(shape) or self._own(*shape)
        return how

    def token_s(self, state: dict[Any, Any]) -> float:
        """Seconds a token with everything as `state` has it."""
        self._now = state
        self._attention.BLOCK, self._attention.WARPS = state["attention"]
        self._ops.MOST_ASKED = state["asked"]
        return self._bed.token_s(ROUNDS, STEPS)

    def candidates(self) -> list[tuple[Any, Any]]:
        """(what, how), taking turns between all that can be changed."""
        each: list[list[tuple[Any, Any]]] = [[("attention", cut) for cut in CUTS], [("asked", most) for most in ASKED]]
        each += [[(shape, how) for how in configurations(shape)] for shape in self.shapes if shape[0] < _MOST_ROWS]
        return [one for some in itertools.zip_longest(*each) for one in some if one is not None]

    def attempt(self, what: Any, how: Any) -> None:
        """Stay there if it is faster twice, the second time against the state before it, measured again."""
        if self.state[what] == how:
            return
        if len(self.tried) % _ANEW == 0:  # clocks and temperature drift
            self.best_s = self.token_s(self.state)
        new = {**self.state, what: how}
        try:
            took_s = self.token_s(new)
        except Exception as problem:  # one that does not compile or fit is left out, and said
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
    """Print the way and where it ends; write all that was tried as JSON where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="random:Qwen3-0.6B")
    parser.add_argument("--places", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    until_s = time.monotonic() + given.seconds
    with torch.inference_mode():
        descent = Descent(Bed(given.model, given.places))
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
