"""How products are cut and launched: tables found in sweeps, and what is measured on cards without one.

A table holds the best settings found within whole decoder layers on an H200. On other cards, and for several vectors
on all, the fastest of a few candidates is measured when a shape is first seen, which is during warm-up, and cached
beside the kernels that Triton compiled, so that one warm-up pays for it.

    BN, BK      rows of a program, and columns that it reads at once; without BK: all
    ROWS        rows of a warp of `slabs`
    CHUNKS, DEPTH   of `cores`: chunks of a part of a row, and parts under way; DEPTH alone: see `nibbles`
    R           rows of a warp of `experts`
    CTAS        programs, each of which takes one group of rows after another; ONCE: a program for each group
    STAGES      loads of a loop that are under way; AHEAD: elements of a row to prefetch before the vector is ready
"""

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

from . import core_parts
from .parts import can_be_early

Settings = dict[str, int]
Key = tuple[str, int, int, int, bool, str]
"""Card, vectors, rows and columns of a matrix, whether it is gated, dtype."""
Measured = tuple[str, dict[str, float]]
"""The fastest candidate, and microseconds of each that ran."""
Run = Callable[[str], object]
"""Computes a product with the candidate of this name."""

MOST_VECTORS = 32
HELD_COLUMNS = 16384  # of a vector that a program keeps in registers
ONCE = 1 << 30
SLAB_COLUMNS = 128  # of a matrix of `slabs` are a multiple of this
SWEPT = ("NVIDIA H200",)  # cards that have a table
FILE, ROUNDS = "measured.json", 20
COMPILERS = min(32, os.cpu_count() or 1)
NEAR = 1.3  # candidates that take longer alone than the fastest by more than this are not tried in a layer
LATE = 1.2  # a layer of our products alone was faster than one with the library's where it is faster by up to 14%


# --- candidates of cards without a table ----------------------------------------------------------

WAYS: dict[str, Settings] = {
    "rows 1x8": {"BN": 1, "STAGES": 1, "CTAS": ONCE, "num_warps": 8},
    "rows 2x4": {"BN": 2, "STAGES": 1, "CTAS": ONCE, "num_warps": 4},
    "rows 4x4": {"BN": 4, "STAGES": 1, "CTAS": ONCE, "num_warps": 4},
    "persistent 4x8": {"BN": 4, "STAGES": 4, "CTAS": 132, "num_warps": 8},
    "tiles 4x512": {"BN": 4, "BK": 512, "STAGES": 6, "AHEAD": 1024, "num_warps": 2},
    "tiles 16x256": {"BN": 16, "BK": 256, "STAGES": 5, "AHEAD": 0, "num_warps": 4},
}
"""Of a product with one vector: rows of a program times warps, or rows and columns of a tile."""
CORE_WAYS: dict[str, Settings] = {
    "cores 4x8": {"CHUNKS": 4, "DEPTH": 2, "CTAS": 132, "num_warps": 8},
    "cores 1x8": {"CHUNKS": 1, "DEPTH": 2, "CTAS": 264, "num_warps": 8},
    "cores 2x4": {"CHUNKS": 2, "DEPTH": 2, "CTAS": 264, "num_warps": 4},
}
"""Of 8-bit rows on tensor cores as well: chunks times warps."""
TILES: dict[str, Settings] = {
    "32x128, 4 ahead": {"BN": 32, "BK": 128, "TURNED": 0, "num_warps": 4, "num_stages": 4},
    "32x128, 9 ahead": {"BN": 32, "BK": 128, "TURNED": 0, "num_warps": 4, "num_stages": 9},
    "32x128, 14 ahead": {"BN": 32, "BK": 128, "TURNED": 0, "num_warps": 4, "num_stages": 14},
    "16x256, 6 ahead": {"BN": 16, "BK": 256, "TURNED": 0, "num_warps": 4, "num_stages": 6},
    "64x128, 4 ahead, turned": {"BN": 64, "BK": 128, "TURNED": 1, "num_warps": 4, "num_stages": 4},
    "64x128, 6 ahead, turned": {"BN": 64, "BK": 128, "TURNED": 1, "num_warps": 4, "num_stages": 6},
}
"""Of a product with several vectors: rows of the matrix in a program, columns loaded at once, and loads under way."""
TILES_OF_8_BITS: dict[str, Settings] = TILES | {
    "32x256, 4 ahead": {"BN": 32, "BK": 256, "TURNED": 0, "num_warps": 4, "num_stages": 4},
    "32x256, 9 ahead": {"BN": 32, "BK": 256, "TURNED": 0, "num_warps": 4, "num_stages": 9},
    "64x256, 4 ahead, turned": {"BN": 64, "BK": 256, "TURNED": 1, "num_warps": 4, "num_stages": 4},
}
LIBRARY = "library"
TILES_OR_LIBRARY: dict[str, Any] = {LIBRARY: torch.__version__, **TILES}


def swept() -> bool:
    """Whether this card has a table."""
    return torch.cuda.get_device_name() in SWEPT


def ways(w: torch.Tensor) -> dict[str, Settings]:
    """The candidates of a product with one vector: e4m3 and the longest rows are not streamed, and only 8 bits are for
    `cores`."""
    streamed = w.dtype != torch.float8_e4m3fn and w.shape[1] <= HELD_COLUMNS
    found = {way: how for way, how in WAYS.items() if streamed or "CTAS" not in how}
    if w.element_size() > 1:
        return found
    return found | {way: how for way, how in CORE_WAYS.items() if core_parts.parts(w.shape[1], 4, how)}


# --- tables ---------------------------------------------------------------------------------------


def for_products(rows: int, columns: int, item: int, gated: bool) -> Settings:
    """Of `products`, in the shapes of Llama 3 8B, also over two ranks, of Qwen3 0.6B, of Gemma 3 1B, and of hybrids and
    mixtures with 1024 or 2048 columns; item: bytes of a weight."""
    if not can_be_early():  # before anything was measured, with little shared memory
        return {"BN": 4, "BK": 512, "STAGES": 1, "AHEAD": 0, "num_warps": 4}
    if columns > HELD_COLUMNS:
        return {"BN": 4, "BK": 512, "STAGES": 6 if item > 1 else 4, "AHEAD": 1024, "num_warps": 2}
    if item == 1:
        return _for_8_bits(rows, columns, gated)
    if item == 4:
        return {"BN": 4, "BK": min(512, triton.next_power_of_2(columns)), "STAGES": 1, "AHEAD": 0, "num_warps": 2}
    if 1024 < columns <= 1536 and columns % SLAB_COLUMNS == 0:  # Gemma 3 1B
        return {"ROWS": 4 if rows > 1 << 15 else 2, "num_warps": 4 if gated or rows > 1 << 15 else 8}
    if rows <= 1536 and columns in (1024, 2048, 3072) and not gated:  # Gemma 3 1B and Qwen3 0.6B: output projections,
        return {"ROWS": 1, "num_warps": 4 if columns == 1024 else 8}  # and down of the latter
    if rows <= 1536 and 4096 < columns <= 8192 and columns % SLAB_COLUMNS == 0:
        return {"ROWS": 1, "num_warps": 2}
    if (rows, columns) in ((3072, 4096), (4096, 2048)) and not gated:  # halves of Llama 3 8B, for two ranks
        return {"BN": 4, "BK": 512, "STAGES": 6, "AHEAD": 1024, "num_warps": 2}
    if rows == 2048 < columns <= 4096 and columns % SLAB_COLUMNS == 0 and not gated:  # Qwen3-30B-A3B, DeepSeek-V2-Lite
        return {"ROWS": 1, "num_warps": 4}
    if columns == 2048 and 2048 < rows <= 8192 and not gated:  # their queries, keys and values
        return {"ROWS": 2, "num_warps": 8} if rows < 4096 else {"ROWS": 4, "num_warps": 4}
    if columns == 2048 and 8192 <= rows <= 1 << 15 and gated:  # LFM2 1.2B, SmolLM3 3B
        return {"BN": 4, "STAGES": 1, "CTAS": ONCE, "num_warps": 8}
    if columns == 1024 and rows <= 2048 and gated:  # Falcon-H1 0.5B
        return {"ROWS": 4, "num_warps": 4}
    if 2048 < columns <= 3072 and not gated:
        if rows > 1 << 15:
            return {"BN": 16, "BK": 256, "STAGES": 6, "AHEAD": 0, "num_warps": 4}
        if rows > columns:
            return {"BN": 4, "STAGES": 3, "CTAS": 330, "num_warps": 4}
    if columns <= 3072 and rows > 1 << 15:
        return {"BN": 8 if columns <= 2048 else 4, "STAGES": 1, "CTAS": ONCE, "num_warps": 4}
    if columns == 1024 and (gated or columns < rows <= 1 << 15):  # q, k and v of Qwen3 0.6B, gate and up
        return {"ROWS": 1, "num_warps": 8}
    if columns <= 1024 and gated:  # few registers, so that the next kernel can start beside it
        return {"BN": 2, "STAGES": 1, "CTAS": ONCE, "num_warps": 2, "maxnreg": 80}
    if columns <= 3072:
        if columns <= 1024 and rows > columns:
            return {"BN": 4, "STAGES": 1, "CTAS": ONCE, "num_warps": 2}
        return {"BN": 2 if rows > columns or columns > 2048 else 1, "STAGES": 1, "CTAS": ONCE, "num_warps": 4}
    if rows > 1 << 15:
        return {"BN": 8, "BK": 512, "STAGES": 6, "AHEAD": 0, "num_warps": 4}
    if gated:
        return {"BN": 4, "BK": 512, "STAGES": 6, "AHEAD": 512, "num_warps": 2}
    if columns > 8192:
        return {"BN": 1, "STAGES": 3, "CTAS": 264, "num_warps": 8}
    if rows > columns and columns <= 4096:
        return {"BN": 4, "STAGES": 5, "CTAS": 132, "num_warps": 8}
    if (rows, columns) in ((2880, 4096), (4096, 4096)):  # output projections: all is asked for while attention runs
        return {"ROWS": 2, "num_warps": 4}
    if rows <= 3072 and columns <= 4096:
        return {"BN": 2, "STAGES": 1, "CTAS": ONCE, "num_warps": 4}
    return {"BN": 4, "BK": 512, "STAGES": 6, "AHEAD": 1024, "num_warps": 2}


def _for_8_bits(rows: int, columns: int, gated: bool) -> Settings:
    if rows >= 3072 and columns >= 4096:  # enough tiles of 16 rows for all multiprocessors
        how = _rows_on_cores(rows, columns, gated)
        if core_parts.parts(columns, 4, how):
            return how
    if columns > 8192:
        return {"BN": 1 if gated else 2, "STAGES": 4, "CTAS": 132, "num_warps": 8}
    if gated:
        return {"BN": 2, "STAGES": 3, "CTAS": 528, "num_warps": 4}
    if rows > columns:
        return {"BN": 4, "STAGES": 4, "CTAS": 264, "num_warps": 4}
    return {"BN": 4 if columns <= 4096 else 2, "STAGES": 1, "CTAS": ONCE, "num_warps": 4}


def _rows_on_cores(rows: int, columns: int, gated: bool) -> Settings:
    """Settings of `cores` for 8-bit weights, found in the same way."""
    if columns > 8192:
        return {"CHUNKS": 1, "DEPTH": 4 if gated else 8, "CTAS": 132, "num_warps": 8}
    if gated:
        return {"CHUNKS": 1, "DEPTH": 2, "CTAS": 264, "num_warps": 8}
    if rows > columns:
        return {"CHUNKS": 4, "DEPTH": 2, "CTAS": 264, "num_warps": 4}
    return {"CHUNKS": 4, "DEPTH": 1, "CTAS": ONCE, "num_warps": 8}


def for_floats(how: Settings, columns: int, swept: bool) -> Settings:
    """Those of e4m3 in place of those of int8. Only int8 is streamed, and of a table long rows are in larger parts."""
    if "CTAS" in how and "CHUNKS" not in how:
        return {"BN": 4, "BK": 512, "STAGES": 4, "AHEAD": 0, "num_warps": 4}
    larger = how | {"CHUNKS": 2, "DEPTH": 4}
    longer = swept and how.get("CHUNKS") == 1 and how["DEPTH"] == 8 and core_parts.parts(columns, 4, larger)
    return larger if longer else how


def for_tiles(rows: int, columns: int, gated: bool) -> Settings:
    """Of `tiles`, in the shapes of Llama 3 8B and of Qwen3 0.6B."""
    if columns > 8192:
        return {"num_warps": 16, "CTAS": 132, "DEPTH": 4, "maxnreg": 128}
    if columns > 2048:
        return {"num_warps": 8, "CTAS": 264 if gated else 132, "DEPTH": 4, "maxnreg": 128}
    warps = min(16 if rows <= columns else 8, triton.next_power_of_2(columns // 128 + 1) // 2)
    return {"num_warps": warps, "CTAS": 132, "DEPTH": 2}


def for_nibbles(rows: int, columns: int, gated: bool) -> Settings:
    """Of `nibbles`, in the shapes of Llama 3 8B; DEPTH: see its kernel."""
    if columns <= 1024:
        return {"num_warps": 4, "CTAS": 264, "DEPTH": 2}
    if columns > 4096:
        return {"num_warps": 16, "CTAS": 132, "DEPTH": 4, "maxnreg": 128}
    return {"num_warps": 8, "CTAS": 264, "DEPTH": 4 if gated else 2, "maxnreg": 128 if gated else 96}


def for_experts(per: int, rows: int, columns: int, down: bool, top: int = 4) -> Settings:
    """Of `experts`, in the shapes of gpt-oss-20b and, in 16 bits, of Qwen3-30B-A3B and DeepSeek-V2-Lite, of gate and up
    for each slot; of other rows as many as give a warp about as much to load at once. per: weights in a word of 32
    bits."""
    of_slots = max(4, triton.next_power_of_2(top))  # a warp for each, if not more
    if per == 8 and down:
        return {"R": 4, "num_warps": of_slots, "STAGES": 3, "CTAS": 360}
    if per == 8:
        return {"R": 4, "num_warps": 4, "STAGES": 2, "CTAS": 124}
    chunks = triton.cdiv(columns, per * 128)
    if down and per == 2 and 3 <= chunks <= 6 and of_slots <= 16:
        return {"R": 4, "num_warps": 16, "STAGES": 1, "CTAS": ONCE}
    if down and per == 2 and 7 <= chunks <= 8 and of_slots <= 8:  # LFM2-8B-A1B, Nemotron 3 Nano
        return {"R": 2, "num_warps": 8, "STAGES": 1, "CTAS": 264}
    if down:
        fit = next(number for number in (4, 2, 1) if number * chunks <= 12 or number == 1)
        return {"R": fit, "num_warps": of_slots, "STAGES": 1, "CTAS": ONCE}
    if per == 2 and 4 <= chunks <= 8:  # two groups of 16 rows for each program
        return {"R": 4, "num_warps": 4, "STAGES": 1, "CTAS": triton.cdiv(rows, 32)}
    return {"R": 4 if chunks <= 12 else 2, "num_warps": 4 if chunks <= 12 else 8, "STAGES": 1, "CTAS": ONCE}


def for_mixtures(tokens: int, experts: int, top: int, item: int, packed: bool) -> Settings:
    """Of `mixtures`, in the shape of gpt-oss-20b for 8 and 256 tokens. item: bytes of an activation; packed: MXFP4"""
    few = tokens * top <= 32 * experts
    if item == 4:
        size = 16 if few else 64
        return {"BT": size, "BN": 64, "BK": 64, "TURNED": False, "num_warps": 4, "num_stages": 3 if few else 2}
    if few:
        return {"BT": 16, "BN": 64, "BK": 128, "TURNED": not packed, "num_warps": 4, "num_stages": 3}
    return {"BT": 64, "BN": 128, "BK": 64, "TURNED": True, "num_warps": 8, "num_stages": 3}


# --- measuring ------------------------------------------------------------------------------------

CHOSEN: dict[Key, Measured] = {}
_collected: list[tuple[Run, str]] | None = None  # of a layer that is only asked which products it has


def key_of(w: torch.Tensor, gated: bool, vectors: int = 1) -> Key:
    """What the time of a product with this matrix depends on."""
    rows = w.shape[0] // (2 if gated else 1)
    return torch.cuda.get_device_name(), vectors, rows, w.shape[1], gated, str(w.dtype)


def choose(key: Key, ways: dict[str, Any], run: Run) -> str | None:
    """The candidate for this product; None while a graph is captured that needs one not chosen before."""
    if key not in CHOSEN:
        if torch.cuda.is_current_stream_capturing():
            return None
        CHOSEN[key] = _preferred(fastest(key, ways, run))
    return CHOSEN[key][0]


def _preferred(found: Measured) -> Measured:
    """The library's way only where ours take longer by LATE: it cannot begin early, nor can what follows it."""
    way, took_us = found
    ours = {name: us for name, us in took_us.items() if name != LIBRARY}
    best = min(ours, key=lambda name: ours[name], default=LIBRARY)
    return (best if way == LIBRARY and took_us[best] < LATE * took_us[LIBRARY] else way), took_us


def collects(key: Key, ways: dict[str, Any], run: Run) -> bool:
    """Whether a layer is only asked which products it has: this one's candidates will be compiled with those of all
    others, and it need not be computed now."""
    if _collected is None or key in CHOSEN:
        return False
    if not _cache(key, ways).has_file(FILE):
        _collected.extend((run, way) for way in ways)
    return True


def settle(weights: list[torch.Tensor], vectors: int, gated: bool, run: Callable[[], object]) -> None:
    """Choose for all matrices of a layer, which `run` computes. weights, gated: as of `decoder_layer.decoder_layer`."""
    if vectors == 1 and swept():
        return
    four_bits = (torch.int32, torch.uint8)  # have tables alone
    dense = [(place, w) for place, w in enumerate(weights) if w.dtype not in four_bits]
    several = TILES_OR_LIBRARY | TILES_OF_8_BITS
    read = {key_of(w, gated and place == 2, vectors): w for place, w in dense}
    settle_layer(read, WAYS | CORE_WAYS if vectors == 1 else several, run)


def settle_layer(weights: dict[Key, torch.Tensor], ways: dict[str, Any], run: Callable[[], object]) -> None:
    """Choose for the matrices of a layer, by key, in which `run` multiplies with them in the ways that CHOSEN has.

    What is fastest alone may leave the next kernel no room to begin early, so one matrix after the other is tried in
    the ways that are near it, by the time of the whole layer. A layer that would stay in L2 from one round to the next
    is left as it was found alone.
    """
    global _collected
    if all(key in CHOSEN for key in weights) or torch.cuda.is_current_stream_capturing():
        return
    tasks = _collected = []
    try:
        run()
    finally:
        _collected = None
    _run_each(tasks)
    run()
    cached = 2 * torch.cuda.get_device_properties().L2_cache_size
    if sum(weight.numel() * weight.element_size() for weight in weights.values()) < cached:
        return
    for key in sorted(weights.keys() & CHOSEN.keys(), key=lambda key: -weights[key].numel()):
        alone = CHOSEN[key][1]
        near = {way: ways[way] for way, took_us in alone.items() if took_us < NEAR * min(alone.values())}

        def run_in(way: str, key: Key = key, alone: dict[str, float] = alone) -> None:
            CHOSEN[key] = way, alone
            run()

        run_in(fastest(("layer", *sorted(map(repr, weights)), key), near, run_in)[0])


def fastest(key: tuple[object, ...], ways: dict[str, object], run: Run) -> Measured:
    """The fastest of `ways`, which `run` carries out: as cached for this key, else measured now and cached.

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


def _run_each(tasks: list[tuple[Run, str]]) -> list[bool]:
    """Run each once, and with that compile it; whether this card has memory enough for it. Several compile at once:
    LLVM runs without the interpreter's lock, and ptxas is a program of its own."""
    stream, inference = torch.cuda.current_stream(), torch.is_inference_mode_enabled()  # each thread has its own

    def fits(task: tuple[Run, str]) -> bool:
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


def measured(ways: dict[str, object], run: Run) -> Measured:
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
