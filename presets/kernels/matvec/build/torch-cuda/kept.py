"""What was measured on this card is kept beside the kernels that Triton compiled, so that one warm-up pays for it."""

import gc
import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
import triton
from triton.runtime.cache import get_cache_manager

Key = tuple[str, int, int, int, bool, str]
"""Card, vectors, rows and columns of a matrix, whether it is gated, dtype."""
Measured = tuple[str, dict[str, float]]
"""The fastest way, and microseconds of each that ran."""
FILE, ROUNDS = "measured.json", 20
COMPILERS = min(32, os.cpu_count() or 1)
NEAR = 1.3  # ways that take longer alone than the fastest by more than this are not tried in a layer


Task = tuple[Callable[[str], object], str]
"""What to run, and in which way."""


class _Asked:
    """Products of a layer that is asked for them, see `postponed`."""

    def __init__(self) -> None:
        self.going_on = False
        self.tasks: list[Task] = []


_asked = _Asked()


def fastest(key: tuple[object, ...], ways: dict[str, object], run: Callable[[str], object]) -> Measured:
    """The fastest of `ways`, which `run` carries out: as kept for this key, else measured now and kept.

    key   what the time depends on, the card included. Other ways, or another Triton, are measured anew.
    """
    cache = _cache(key, ways)
    if path := cache.get_file(FILE):
        way, took_us = json.loads(Path(path).read_text(encoding="utf-8"))
        return way, took_us
    found = measured(ways, run)
    cache.put(json.dumps(found), FILE, binary=False)
    return found


def _cache(key: tuple[object, ...], ways: dict[str, object]) -> Any:
    text = repr((key, sorted(ways.items()), triton.__version__))
    return get_cache_manager(hashlib.sha256(text.encode()).hexdigest())


def postponed(key: Key, ways: dict[str, object], run: Callable[[str], object]) -> bool:
    """Whether a layer is only asked which products it has: this one's ways will be compiled with those of all others,
    and it need not be computed now."""
    if not _asked.going_on:
        return False
    if not _cache(key, ways).has_file(FILE):
        _asked.tasks += ((run, way) for way in ways)
    return True


def settle(
    weights: dict[Key, torch.Tensor], chosen: dict[Key, Measured], ways: dict[str, object], run: Callable[[], object]
) -> None:
    """Choose for the matrices of a layer, by key, in which `run` multiplies with them in the ways that `chosen` has.

    What is fastest alone may leave the next kernel no room to begin early, so one matrix after the other is tried in
    the ways that are near it, by the time of the whole layer. A layer that would stay in L2 from one round to the next
    is left as it was found alone.
    """
    if all(key in chosen for key in weights) or torch.cuda.is_current_stream_capturing():
        return
    _asked.going_on = True
    try:
        run()
    finally:
        _asked.going_on = False
    _run_each(_asked.tasks)
    _asked.tasks.clear()
    run()
    cached = 2 * torch.cuda.get_device_properties().L2_cache_size
    if sum(weight.numel() * weight.element_size() for weight in weights.values()) < cached:
        return
    for key in sorted(weights.keys() & chosen.keys(), key=lambda key: -weights[key].numel()):
        alone = chosen[key][1]
        near = {way: ways[way] for way, took_us in alone.items() if took_us < NEAR * min(alone.values())}

        def run_in(way: str, key: Key = key, alone: dict[str, float] = alone) -> None:
            chosen[key] = way, alone
            run()

        run_in(fastest(("layer", *sorted(map(repr, weights)), key), near, run_in)[0])


def _run_each(tasks: list[Task]) -> list[bool]:
    """Run each once, and with that compile it; whether this card has memory enough for it. Several compile at once:
    LLVM runs without the interpreter's lock, and ptxas is a program of its own."""
    stream, inference = torch.cuda.current_stream(), torch.is_inference_mode_enabled()  # each thread has its own

    def fits(task: Task) -> bool:
        run, way = task
        try:
            with torch.inference_mode(inference), torch.cuda.stream(stream):
                run(way)
        except triton.runtime.errors.OutOfResources:
            return False
        return True

    with ThreadPoolExecutor(COMPILERS) as pool:
        found = list(pool.map(fits, tasks))
    torch.cuda.synchronize()
    return found


def measured(ways: dict[str, object], run: Callable[[str], object]) -> Measured:
    """Replays of a graph are timed, since launches from the host take longer than small matrices. A way that this card
    has too little memory for is left out."""
    took_us: dict[str, float] = {}
    fits = _run_each([(run, way) for way in ways])
    for way in (way for way, fit in zip(ways, fits, strict=True) if fit):
        graph, begin, end = torch.cuda.CUDAGraph(), *(torch.cuda.Event(enable_timing=True) for _ in range(2))
        collects = gc.isenabled()
        gc.disable()  # it could free an earlier graph, which ends the capture of this one
        try:
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                for _ in range(ROUNDS):
                    run(way)
        finally:
            if collects:
                gc.enable()
        graph.replay()
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        took_us[way] = begin.elapsed_time(end) * 1e3 / ROUNDS
    return min(took_us, key=lambda way: took_us[way]), took_us
