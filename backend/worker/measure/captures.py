"""How long CUDA graphs take to be captured, whoever captures them."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch


@contextlib.contextmanager
def timed_captures() -> Iterator[list[float]]:
    """Context that yields a list, to which the seconds of each capture are added."""
    took_s, begun_s = list[float](), dict[int, float]()
    begin, end = torch.cuda.CUDAGraph.capture_begin, torch.cuda.CUDAGraph.capture_end

    def capture_begin(graph: Any, *args: Any, **more: Any) -> None:
        begun_s[id(graph)] = time.perf_counter()
        begin(graph, *args, **more)

    def capture_end(graph: Any) -> None:
        end(graph)
        took_s.append(time.perf_counter() - begun_s.pop(id(graph), time.perf_counter()))

    with mock.patch.multiple(torch.cuda.CUDAGraph, capture_begin=capture_begin, capture_end=capture_end):
        yield took_s
