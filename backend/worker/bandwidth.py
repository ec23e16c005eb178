"""Measures how fast memory is read and copied: `python -m backend.worker.bandwidth cpu|cuda` prints one JSON line.

Bytes are counted, not assumed: a read is every byte of a buffer far larger than any cache, a copy is a read and a write
of each. Each figure is the median over repeats. Reading is tried two ways, as a sum and as the product of a matrix with
a vector (what decoding does), and the faster one stands: a limit that something can beat is none.
"""

import itertools
import json
import os
import statistics
import sys
import time
from collections.abc import Callable

import torch

BUFFER_BYTES = {"cuda": 2 << 30, "cpu": 512 << 20}
REPEATS = {"cuda": 30, "cpu": 9}
WARM_UP = 3
COLUMNS = 8192


def measure(device: str, most_bytes: int | None = None) -> dict[str, object]:
    """Both rates in bytes a second, and how they were found."""
    size = min(BUFFER_BYTES[device], most_bytes or _room_bytes(device) // 4)
    rows = max(1, size // (2 * COLUMNS))
    with torch.inference_mode():
        source = torch.ones(rows, COLUMNS, dtype=torch.bfloat16, device=device)
        words = source.view(torch.float32)  # the same bytes: sums of float32 need fewer instructions a byte
        vector = torch.ones(COLUMNS, dtype=torch.bfloat16, device=device)
        floats = torch.ones(words.shape[1], dtype=torch.float32, device=device)
        reads: dict[str, Callable[[], object]] = {
            "sum of float32": lambda: torch.sum(words),
            "matrix-vector product in bfloat16": lambda: torch.mv(source, vector),
            "matrix-vector product in float32": lambda: torch.mv(words, floats),
        }
        rates = {name: source.nbytes / _median_s(act, device) for name, act in reads.items()}
        target = torch.empty_like(source)
        copy_s = _median_s(lambda: target.copy_(source), device)
    best = max(rates, key=lambda name: rates[name])
    threads = f", {torch.get_num_threads()} threads" if device == "cpu" else ""
    return {
        "read_bytes_per_s": rates[best],
        "copy_bytes_per_s": 2 * source.nbytes / copy_s,
        "method": f"{best}; {source.nbytes:,} bytes, median of {REPEATS[device]}{threads}",
    }


def _median_s(act: Callable[[], object], device: str) -> float:
    """Seconds of one call: device events on a GPU, so that launching is not in it; the clock on a CPU."""
    for _ in range(WARM_UP):
        act()
    if device == "cpu":
        taken = []
        for _ in range(REPEATS[device]):
            begin_s = time.perf_counter()
            act()
            taken.append(time.perf_counter() - begin_s)
        return statistics.median(taken)
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(REPEATS[device] + 1)]
    torch.cuda.synchronize()
    marks[0].record()
    for mark in marks[1:]:
        act()
        mark.record()
    torch.cuda.synchronize()
    taken = [float(a.elapsed_time(b)) / 1e3 for a, b in itertools.pairwise(marks)]
    return statistics.median(taken)


def _room_bytes(device: str) -> int:
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[0])
    from backend.hardware import machine

    return machine().free_bytes


def main() -> None:
    """What libraries print goes to standard error: the result is the only line on standard output."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    out.write(json.dumps(measure(sys.argv[1])) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
