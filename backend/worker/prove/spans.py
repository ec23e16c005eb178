"""The events of a trace, in columns: as one object each, those of four tokens of a small model take 8 MB, which
Python does not give back, and which the next run in the process would count as its own."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

Shapes = Sequence[tuple[int, ...]]


class Span(NamedTuple):
    """An event of a trace, in nanoseconds.

    id      correlation id: a kernel and the call that launched it share it
    link    of a kernel: the id of the operator that launched it, 0 for none
    """

    name: str
    begin: int
    end: int
    on_gpu: bool = False
    shapes: Shapes = ()
    id: int = 0
    link: int = 0
    thread: int = 0


class Spans:
    """Many of them, each made anew whenever it is asked for."""

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._names: list[str] = []
        self._kept: dict[str, str] = {}
        self._shapes: dict[int, Shapes] = {}
        self._numbers = array("q")
        for span in spans:
            self.add(span)

    def add(self, span: Span) -> None:
        """Behind the others."""
        if span.shapes:
            self._shapes[len(self._names)] = span.shapes
        self._names.append(self._kept.setdefault(span.name, span.name))
        self._numbers.extend((span.begin, span.end, span.on_gpu, span.id, span.link, span.thread))

    def __iter__(self) -> Iterator[Span]:
        return map(self._at, range(len(self._names)))

    def of_thread(self, thread: int) -> Iterator[Span]:
        """Those of a thread of the host, by when they begin; of two that begin together the longer one first."""
        begin, end, on_gpu, _, _, on = np.array(self._numbers, np.int64).reshape(-1, 6).T
        order = np.lexsort((-end, begin))
        mine = (on_gpu == 0) & (on == thread)
        return (self._at(int(at)) for at in order[mine[order]])

    def _at(self, at: int) -> Span:
        begin, end, on_gpu, own, link, thread = self._numbers[6 * at : 6 * at + 6]
        return Span(self._names[at], begin, end, bool(on_gpu), self._shapes.get(at, ()), own, link, thread)
