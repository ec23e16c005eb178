"""Measures how long products in bfloat16 take on this CPU, as multiples of those in float32.

A decoder's step multiplies each of its matrices once with a few rows. So does this: over as many matrices as make up a
model of some size, so that they come from the caches or from memory as a model's would. Both formats are timed in turn
on one thread, in seconds of the processor: other programs at work count little.
"""

import statistics
import time

import torch

SIZES = ((8 << 20, 160), (96 << 20, 1_024))
"""Bytes of all weights in bfloat16, and the side of a matrix, as models of that size have them."""

ROWS = (1, 8)
"""Sequences in a batch."""

REPEATS = 5


def measured() -> list[dict[str, float]]:
    """Fields of `tokendyno.backend.hardware.number_formats.FormatTime`."""
    threads = torch.get_num_threads()
    found = []
    try:
        for weight_bytes, side in SIZES:
            torch.set_num_threads(1)
            with torch.inference_mode():
                ratios = _ratios(weight_bytes // (2 * side * side), side)
            found += [{"weight_bytes": weight_bytes, "rows": rows, "ratio": r} for rows, r in ratios.items()]
    finally:
        torch.set_num_threads(threads)
    return found


def _ratios(count: int, side: int) -> dict[int, float]:
    """By rows: time in bfloat16 over time in float32, of a step through `count` matrices."""
    formats = (torch.bfloat16, torch.float32)
    weights = {dtype: [torch.ones(side, side, dtype=dtype) for _ in range(count)] for dtype in formats}
    ratios = {}
    for rows in ROWS:
        taken: dict[torch.dtype, list[float]] = {dtype: [] for dtype in formats}
        for _ in range(REPEATS + 1):
            for dtype in formats:
                x = torch.ones(rows, side, dtype=dtype)
                begin_s = time.process_time()
                for weight in weights[dtype]:
                    torch.nn.functional.linear(x, weight)
                taken[dtype].append(time.process_time() - begin_s)
        bfloat16_s, float32_s = (statistics.median(taken[dtype][1:]) for dtype in formats)
        ratios[rows] = bfloat16_s / float32_s
    return ratios
