"""Measures read and copy bandwidth of memory: `python -m tokendyno.backend.worker.bandwidth cpu|cuda` prints JSON.

A read covers every byte of a buffer far larger than any cache, a copy reads and writes each byte. Reading is measured
as a sum and as a matrix-vector product (what decoding does); the faster one counts, because it serves as an upper
limit. On a GPU each figure is the median over repeats. On a CPU it is the fastest of them: other programs that are at
work meanwhile only make a call slower, and the result is kept."""

import itertools
import json
import os
import statistics
import sys
import time
import timeit
from collections.abc import Callable

import torch

from tokendyno.backend.hardware import detect

BUFFER_BYTES = {"cuda": 2 << 30, "cpu": 512 << 20}
REPEATS = {"cuda": 30, "cpu": 25}
WARM_UP = 3
COLUMNS = 8192


def measure(device: str) -> dict[str, object]:
    """Both rates in bytes per second, and how they were measured."""
    free_bytes = torch.cuda.mem_get_info()[0] if device == "cuda" else detect().free_bytes
    size = min(BUFFER_BYTES[device], free_bytes // 4)
    rows = max(1, size // (2 * COLUMNS))
    with torch.inference_mode():
        source = torch.ones(rows, COLUMNS, dtype=torch.bfloat16, device=device)
        words = source.view(torch.float32)  # the same bytes: float32 sums need fewer instructions per byte
        vector = torch.ones(COLUMNS, dtype=torch.bfloat16, device=device)
        floats = torch.ones(words.shape[1], dtype=torch.float32, device=device)
        reads: dict[str, Callable[[], object]] = {
            "sum of float32": lambda: torch.sum(words),
            "matrix-vector product in bfloat16": lambda: torch.mv(source, vector),
            "matrix-vector product in float32": lambda: torch.mv(words, floats),
        }
        rates = {name: source.nbytes / _seconds(act, device) for name, act in reads.items()}
        target = torch.empty_like(source)
        copy_s = _seconds(lambda: target.copy_(source), device)
    best = max(rates, key=lambda name: rates[name])
    threads = f"fastest of {REPEATS[device]}, {torch.get_num_threads()} threads"
    how = threads if device == "cpu" else f"median of {REPEATS[device]}"
    return {
        "read_bytes_per_s": rates[best],
        "copy_bytes_per_s": 2 * source.nbytes / copy_s,
        "method": f"{best}; {source.nbytes:,} bytes, {how}",
    }


def _seconds(call: Callable[[], object], device: str) -> float:
    """Seconds of one call: by CUDA events on a GPU, which leave out launching; by the host clock on a CPU."""
    for _ in range(WARM_UP):
        call()
    if device == "cpu":
        return min(timeit.repeat(call, timer=time.perf_counter, repeat=REPEATS[device], number=1))
    events = [torch.cuda.Event(enable_timing=True) for _ in range(REPEATS[device] + 1)]
    torch.cuda.synchronize()
    events[0].record()
    for event in events[1:]:
        call()
        event.record()
    torch.cuda.synchronize()
    times_s = [float(a.elapsed_time(b)) / 1e3 for a, b in itertools.pairwise(events)]
    return statistics.median(times_s)


# --- number formats ------------------------------------------------------------------------------

# How long products in bfloat16 take on this CPU, as multiples of those in float32: a few rows by as many matrices as a
# model of some size has, so that they come from the caches or from memory as a model's would. Both formats are timed
# in turn on one thread, in seconds of the processor: other programs at work count little.

SIZES = ((8 << 20, 160), (96 << 20, 1_024))
"""Bytes of all weights in bfloat16, and the side of a matrix, as models of that size have them."""

ROWS = (1, 8)
"""Sequences in a batch."""

FORMAT_REPEATS = 5


def format_ratios() -> list[dict[str, float]]:
    """Fields of `tokendyno.backend.hardware.number_formats.FormatTime`. One thread computes from then on."""
    torch.set_num_threads(1)
    ratios, formats = [], (torch.bfloat16, torch.float32)
    for weight_bytes, side in SIZES:
        count = weight_bytes // (2 * side * side)
        weights = {dtype: [torch.ones(side, side, dtype=dtype) for _ in range(count)] for dtype in formats}
        for rows in ROWS:
            times_s = [[_step_s(weights[dtype], rows) for dtype in formats] for _ in range(FORMAT_REPEATS + 1)]
            bfloat16_s, float32_s = map(statistics.median, zip(*times_s[1:], strict=True))
            ratios.append({"weight_bytes": weight_bytes, "rows": rows, "ratio": bfloat16_s / float32_s})
    return ratios


def _step_s(weights: list[torch.Tensor], rows: int) -> float:
    """Seconds of multiplying so many rows with each of these square matrices."""
    x = torch.ones(rows, len(weights[0]), dtype=weights[0].dtype)
    begin_s = time.process_time()
    with torch.inference_mode():
        for weight in weights:
            torch.nn.functional.linear(x, weight)
    return time.process_time() - begin_s


def main() -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print
    device = sys.argv[1]
    rates = measure(device)
    if device == "cpu":
        rates["bfloat16"] = format_ratios()
    out.write(json.dumps(rates) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
