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
from collections.abc import Callable

import torch

BUFFER_BYTES = {"cuda": 2 << 30, "cpu": 512 << 20}
REPEATS = {"cuda": 30, "cpu": 25}
WARM_UP = 3
COLUMNS = 8192


def measure(device: str, most_bytes: int | None = None) -> dict[str, object]:
    """Both rates in bytes per second, and how they were measured."""
    size = min(BUFFER_BYTES[device], most_bytes or _room_bytes(device) // 4)
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
    how = f"fastest of {REPEATS['cpu']}, {torch.get_num_threads()} threads"
    if device == "cuda":
        how = f"median of {REPEATS['cuda']}"
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
        times_s = []
        for _ in range(REPEATS[device]):
            begin_s = time.perf_counter()
            call()
            times_s.append(time.perf_counter() - begin_s)
        return min(times_s)
    events = [torch.cuda.Event(enable_timing=True) for _ in range(REPEATS[device] + 1)]
    torch.cuda.synchronize()
    events[0].record()
    for event in events[1:]:
        call()
        event.record()
    torch.cuda.synchronize()
    times_s = [float(a.elapsed_time(b)) / 1e3 for a, b in itertools.pairwise(events)]
    return statistics.median(times_s)


def _room_bytes(device: str) -> int:
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[0])
    from tokendyno.backend.hardware import detect

    return detect().free_bytes


# --- number formats ------------------------------------------------------------------------------

# How long products in bfloat16 take on this CPU, as multiples of those in float32. A decoder's step multiplies each of
# its matrices once with a few rows. So does this: over as many matrices as make up a model of some size, so that they
# come from the caches or from memory as a model's would. Both formats are timed in turn on one thread, in seconds of
# the processor: other programs at work count little.

SIZES = ((8 << 20, 160), (96 << 20, 1_024))
"""Bytes of all weights in bfloat16, and the side of a matrix, as models of that size have them."""

ROWS = (1, 8)
"""Sequences in a batch."""

FORMAT_REPEATS = 5


def format_ratios() -> list[dict[str, float]]:
    """Fields of `tokendyno.backend.hardware.number_formats.FormatTime`. One thread computes from then on."""
    torch.set_num_threads(1)
    times = []
    for weight_bytes, side in SIZES:
        with torch.inference_mode():
            ratios = _ratios(weight_bytes // (2 * side * side), side)
        times += [{"weight_bytes": weight_bytes, "rows": rows, "ratio": ratio} for rows, ratio in ratios.items()]
    return times


def _ratios(count: int, side: int) -> dict[int, float]:
    """By rows: time in bfloat16 over time in float32, of a step through `count` matrices."""
    formats = (torch.bfloat16, torch.float32)
    weights = {dtype: [torch.ones(side, side, dtype=dtype) for _ in range(count)] for dtype in formats}
    ratios = {}
    for rows in ROWS:
        times_s: dict[torch.dtype, list[float]] = {dtype: [] for dtype in formats}
        for _ in range(FORMAT_REPEATS + 1):
            for dtype in formats:
                x = torch.ones(rows, side, dtype=dtype)
                begin_s = time.process_time()
                for weight in weights[dtype]:
                    torch.nn.functional.linear(x, weight)
                times_s[dtype].append(time.process_time() - begin_s)
        bfloat16_s, float32_s = (statistics.median(times_s[dtype][1:]) for dtype in formats)
        ratios[rows] = bfloat16_s / float32_s
    return ratios


def main() -> None:
    """Library output is redirected to standard error: the result is the only line on standard output."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    device = sys.argv[1]
    rates = measure(device)
    if device == "cpu":
        rates["bfloat16"] = format_ratios()
    out.write(json.dumps(rates) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
