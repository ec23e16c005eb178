"""Finds the fastest tile sizes of the 4-bit kernel for each shape: `python -m tools.bench.tiles [--shapes down]`.

Needs a GPU of the Hopper generation or later. Each candidate runs in a CUDA graph of many launches, each launched early
behind the previous one as in a decoder layer, over copies of the weights that together exceed the L2 cache.
"""

import argparse
import functools
import itertools
import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tokendyno.backend.hardware import kernel_packages

SHAPES: dict[str, tuple[int, int, str]] = {  # rows, columns, fused operations: norm, residual, gate
    "qkv": (6144, 4096, "n"),
    "o": (4096, 4096, "r"),
    "gate_up": (28672, 4096, "ng"),
    "down": (4096, 14336, "r"),
}
ONCE = 1 << 30
COPIES_BYTES = 256 << 20
SHARED_BYTES = 220 << 10  # per multiprocessor
LAUNCHES, REPLAYS, AT_ONCE = 60, 3, 16


def candidates(rows: int, columns: int, gated: bool) -> list[dict[str, int]]:
    """Tile sizes whose weights in flight fit, in random order: 8 to 64 words of weights per thread and iteration."""
    groups = 1 << (columns // 128 - 1).bit_length()
    found = []
    for warps, block in itertools.product((2, 4, 8, 16), (4, 8, 16)):
        words = groups * block * 16 * (2 if gated else 1)  # per iteration
        if not 8 <= words // (32 * warps) <= 64:
            continue
        for stages, programs, spread in (
            (1, ONCE, 0), (1, ONCE, 1), (1, 264, 0), (1, 528, 0), (2, 264, 0), (2, 528, 0), (3, 132, 0), (3, 264, 0),
            (3, 528, 0), (4, 132, 0), (4, 264, 0),
        ):  # fmt: skip
            if stages > 1 and stages * words * 4 * max(1, programs // 132) > SHARED_BYTES:
                continue
            if programs < ONCE and programs * block >= rows:
                continue
            cut = {"BN": block, "STAGES": stages, "CTAS": programs, "SPREAD": spread, "num_warps": warps}
            found.append(cut)
    random.Random(0).shuffle(found)
    return found


class Compiling:
    """Replaces a kernel so that launching it only compiles it."""

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __getitem__(self, grid: tuple[int]) -> Any:
        return functools.partial(self.kernel.warmup, grid=grid)


def compile_all(kernels: Any, launch: Any, cuts: list[dict[str, int]]) -> None:
    """Compile in parallel; errors show up again at launch."""
    kernel = kernels.tiles.tokendyno_tile_product
    kernels.tiles.tokendyno_tile_product = Compiling(kernel)
    try:
        with ThreadPoolExecutor(12) as pool, kernels.tiles.triton.AsyncCompileMode(pool, ignore_errors=True):
            for how in cuts:
                launch(0, how)
    finally:
        kernels.tiles.tokendyno_tile_product = kernel


def seconds(launch: Any, how: dict[str, int]) -> float:
    """Seconds per launch, in the fastest of several replays."""
    import torch

    launch(0, how)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for which in range(LAUNCHES):
            launch(which, how)
    graph.replay()
    best = float("inf")
    for _ in range(REPLAYS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        best = min(best, begin.elapsed_time(end) / 1e3 / LAUNCHES)
    return best


def launcher(kernels: Any, shape: tuple[int, int, str], copies: int) -> Any:
    """A function (index of the copy, tile sizes) that launches the kernel on random weights."""
    import torch

    total, columns, ride = shape
    packed = (copies, total // 8, columns // 128, 32, 4)
    tiles = torch.randint(-(2**31), 2**31, packed, dtype=torch.int32, device="cuda")
    scales = torch.rand(copies, columns // 128, total, 2, dtype=torch.bfloat16, device="cuda") / 100
    out = torch.empty(total // 2 if "g" in ride else total, dtype=torch.bfloat16, device="cuda")
    x = torch.randn(columns, dtype=torch.bfloat16, device="cuda")
    norm, residual = torch.ones_like(x), torch.ones_like(out)

    def launch(which: int, how: dict[str, int]) -> None:
        kernels.tiles.product(
            x,
            tiles[which % copies],
            out,
            norm=norm if "n" in ride else None,
            eps=1e-5,
            scale=scales[which % copies],
            residual=residual if "r" in ride else None,
            gated="g" in ride,
            tuned=how,
        )

    return launch


def measure(kernels: Any, name: str, limit_s: float) -> None:
    total, columns, ride = shape = SHAPES[name]
    rows, gated = total // 2 if "g" in ride else total, "g" in ride
    held = total * columns // 2 + total * columns // 128 * 4
    launch = launcher(kernels, shape, -(-COPIES_BYTES // held))
    found, begin = [], time.monotonic()
    cuts = [kernels.tiles.config(rows, columns, gated), *candidates(rows, columns, gated)]
    for tried in range(0, len(cuts), AT_ONCE):
        if time.monotonic() - begin > limit_s:
            print(
                f"{name}: {len(cuts) - tried} of {len(cuts)} tile sizes were skipped after {limit_s:.0f} s", flush=True
            )
            break
        compile_all(kernels, launch, cuts[tried : tried + AT_ONCE])
        for how in cuts[tried : tried + AT_ONCE]:
            try:
                found.append((seconds(launch, how), how))
            except Exception as failure:  # e.g. too much shared memory
                print(f"{name}: {how}: {type(failure).__name__}: {str(failure)[:100]}", flush=True)
    for took_s, how in sorted(found, key=lambda one: one[0])[:5] + found[:1]:
        note = " (config)" if how == cuts[0] else ""
        print(f"{name}: {took_s * 1e6:.2f} us, {held / took_s / 1e9:.0f} GB/s, {how}{note}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--seconds", type=float, default=60.0, help="time limit for all shapes together")
    asked = parser.parse_args()
    from kernels import get_local_kernel

    kernels = get_local_kernel(kernel_packages.BUNDLED / "matvec")
    for name in asked.shapes:
        measure(kernels, name, asked.seconds / len(asked.shapes))


if __name__ == "__main__":
    main()
