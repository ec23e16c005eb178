"""The code that Inductor generated for each graph, and whether the requested options were in effect.

Both are read where torch takes a graph into use, while the options apply, whether it was compiled or came from a cache.
"""

import contextlib
import gzip
import re
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

from tokendyno.backend.messages import GraphCode

MOST_BYTES = 2 << 20
"""Limit for an arm's code as text (packed it is about a twentieth). Graphs beyond it are listed without their code."""

_PATH = re.compile(r"(?<![\w./:])/(?:[\w.+-]+/)+(?=[\w.+-]+)")


class Generated:
    """The graphs of one loaded model, since its compile settings last changed."""

    def __init__(self) -> None:
        self._code: dict[str, tuple[str, str]] = {}  # key in the cache -> compile id, code
        self._graphs = self._with_options = 0

    @contextlib.contextmanager
    def noting(self, options: Sequence[tuple[str, bool]]) -> Iterator[None]:
        """Around whatever may compile."""
        from torch._guards import CompileContext
        from torch._inductor import config
        from torch._inductor.output_code import CompiledFxGraph

        original = CompiledFxGraph.post_compile

        def post_compile(graph: Any, *args: Any, **kwargs: Any) -> Any:
            self._graphs += 1
            self._with_options += all(getattr(config, name) == on for name, on in options)
            compile_id = str(CompileContext.current_compile_id() or "")
            self._code.setdefault(str(graph.cache_key), (compile_id, graph.source_code or ""))
            return original(graph, *args, **kwargs)

        with mock.patch.object(CompiledFxGraph, "post_compile", post_compile):
            yield

    @property
    def graphs(self) -> tuple[int, int]:
        """How many graphs there were, and for how many of them every option was in effect."""
        return self._graphs, self._with_options

    def code(self) -> list[GraphCode]:
        """The code of each graph, in the order of compiling, without names of this machine's folders."""
        graphs, left = [], MOST_BYTES
        for compile_id, code in self._code.values():
            code = _PATH.sub("", code)
            fits = len(code) <= left
            left -= len(code) * fits
            graphs.append(GraphCode(compile_id, len(code), gzip.compress(code.encode(), mtime=0) if fits else b""))
        return graphs
