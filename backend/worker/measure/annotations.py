"""Collects what may explain the latency of a token. The measured path only notes a time, and only where it is paused
anyway: while Dynamo compiles and Python collects garbage. The thread that sends the tokens looks up the rest."""

import gc
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._dynamo.utils import counters, get_compilation_metrics

from tokendyno.backend.messages import Annotation, AnnotationKind
from tokendyno.backend.worker.compiler.ledger import is_recording, watching
from tokendyno.backend.worker.prove.compile_log import first_line, guard

MIN_PAUSE_S, MIN_SHARE = 1e-3, 0.1
"""Shorter pauses of the garbage collector, and those under this share of their token, explain nothing."""
MAX_OF_A_KIND = 100
"""More would hide the chart."""


class Window:
    """The token that fills a sliding window of `slots` KV slots, if it comes after the prompt."""

    def __init__(self, prompt_tokens: int, slots: int) -> None:
        self.token = slots - prompt_tokens
        self.text = f"window filled: from here on the sliding layers hold {slots:,} tokens"


class Annotations:
    """Annotations of one run, collected while entered. `generated`: how many tokens exist, which is the index of the
    token being generated."""

    def __init__(self, generated: Callable[[], int], window: Window | None = None, cuda: bool = False) -> None:
        self._generated, self._cuda = generated, cuda
        self._window = window if window is not None and window.token > 0 else None
        self._marks: deque[Annotation] = deque()
        self._pauses: deque[Annotation] = deque()
        self._counted: Counter[AnnotationKind] = Counter()
        self._compiled: dict[str, tuple[int, float, float]] = {}  # compile id -> token, begin, seconds
        self._records, self._skips = len(get_compilation_metrics()), _skips()
        self._begin_s = self._pause_s = self._compile_s = 0.0
        self._checked, self._allocated = 0, self._segments()
        self._watching = watching(self._compile_begins, self._compile_ends)

    def __enter__(self) -> "Annotations":
        self._begin_s = time.perf_counter()
        self._watching.__enter__()
        gc.callbacks.append(self._collects)
        return self

    def __exit__(self, *exc: object) -> None:
        gc.callbacks.remove(self._collects)
        self._watching.__exit__(None, None, None)

    def add(
        self, kind: AnnotationKind, seconds: float, text: str, token: int | None = None, t_s: float | None = None
    ) -> None:
        self._counted[kind] += 1
        if self._counted[kind] == MAX_OF_A_KIND:
            text += "; what follows of this kind is not shown"
        if self._counted[kind] <= MAX_OF_A_KIND:
            now_s = time.perf_counter() - self._begin_s if t_s is None else t_s
            self._marks.append(Annotation(kind, self._generated() if token is None else token, now_s, seconds, text))

    def take(self, times_s: Sequence[float]) -> list[Annotation]:
        """New annotations since the last call. `times_s`: when each of the tokens sent so far existed."""
        self._check_compiler()
        self._check_memory(times_s)
        while self._pauses and self._pauses[0].token < len(times_s):
            pause = self._pauses.popleft()
            if pause.seconds >= MIN_SHARE * _latency_s(times_s, pause.token):
                self.add(pause.kind, pause.seconds, pause.text, pause.token, pause.t_s)
        if self._window is not None and self._window.token < len(times_s):
            self.add("window", 0.0, self._window.text, self._window.token, times_s[self._window.token])
            self._window = None
        return [self._marks.popleft() for _ in range(len(self._marks))]

    # --- on the measured path ---------------------------------------------------------------------

    def _collects(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._pause_s = time.perf_counter()
        elif (seconds := time.perf_counter() - self._pause_s) >= MIN_PAUSE_S:
            text = f"Python collected garbage (generation {info['generation']})"
            now_s = time.perf_counter() - self._begin_s
            self._pauses.append(Annotation("gc", self._generated(), now_s, seconds, text))

    def _compile_begins(self, args: Any) -> None:
        self._compile_s = time.perf_counter()

    def _compile_ends(self, args: Any) -> None:
        seconds = time.perf_counter() - self._compile_s
        if is_recording(args):
            self.add("compile", seconds, "a CUDA graph was recorded")
        else:
            self._compiled[str(args.compile_id)] = (self._generated(), self._compile_s - self._begin_s, seconds)

    # --- beside it --------------------------------------------------------------------------------

    def _check_compiler(self) -> None:
        """Dynamo writes the record of a compilation a moment after it reports its end."""
        records = get_compilation_metrics()
        for record in records[self._records :]:
            if record.is_runtime:
                continue
            token, t_s, seconds = self._compiled.pop(str(record.compile_id), (None, None, 0.0))
            if record.fail_type:
                self.add("graph_skip", seconds, f"not compiled: {first_line(record.fail_reason or '')}", token, t_s)
            elif record.recompile_reason:
                text = f"compiled again, because this failed: {guard(record.recompile_reason)}"
                self.add("recompile", seconds, text, token, t_s)
            else:
                self.add("compile", seconds, f"compiled for the first time: {record.co_name}", token, t_s)
            if record.cudagraph_skip_reason:
                self._skips += 1
                self.add("graph_skip", 0.0, first_line(record.cudagraph_skip_reason), token, t_s)
        self._records = len(records)
        if _skips() > self._skips:
            self.add("graph_skip", 0.0, "a graph was run without CUDA graphs; torch gave no reason")
        self._skips = _skips()

    def _segments(self) -> int:
        return int(torch.cuda.memory_stats_as_nested_dict()["segment"]["all"]["allocated"]) if self._cuda else 0

    def _check_memory(self, times_s: Sequence[float]) -> None:
        """The allocator keeps no timestamps, so the growth is attributed to the slowest token since the last check."""
        first, end = self._checked, len(times_s)
        segments = self._segments() if end > first else self._allocated
        if segments > self._allocated:
            took_s = [_latency_s(times_s, i) for i in range(first, end)]
            token = first + took_s.index(max(took_s))
            where = f"between tokens {first} and {end - 1}" if end - first > 1 else "for this token"
            text = f"the GPU allocator took more memory from the device, {where}"
            self.add("cache", 0.0, text, token, times_s[token])
        self._checked, self._allocated = end, segments


def _latency_s(times_s: Sequence[float], token: int) -> float:
    return times_s[token] - (times_s[token - 1] if token else 0.0)


def _skips() -> int:
    return int(counters["inductor"]["cudagraph_skips"])
