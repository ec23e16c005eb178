"""The code that Inductor generated for each graph, and whether the options asked for were in effect as it did.

Both are read where torch takes a graph into use, which is inside of the options whether the graph was compiled or
loaded from the cache.
"""

import contextlib
import gzip
import re
from collections.abc import Iterator, Sequence
from typing import Any

from tokendyno.backend.messages import GraphCode

MOST_BYTES = 2 << 20
"""Of an arm's code as text; packed it is about a twentieth. Graphs past it are named and left out."""

_PATH = re.compile(r"(?<![\w./:])/(?:[\w.+-]+/)+(?=[\w.+-]+)")


class Generated:
    """Of one loaded model, since its settings of compiling changed last."""

    def __init__(self) -> None:
        self._code: dict[str, tuple[str, str]] = {}  # key of the code -> id of its graph, text
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
            number = str(CompileContext.current_compile_id() or "")
            self._code.setdefault(str(graph.cache_key), (number, graph.source_code or ""))
            return original(graph, *args, **kwargs)

        CompiledFxGraph.post_compile = post_compile
        try:
            yield
        finally:
            CompiledFxGraph.post_compile = original

    @property
    def graphs(self) -> tuple[int, int]:
        """How many there were, and for how many of them every option was in effect."""
        return self._graphs, self._with_options

    def code(self) -> list[GraphCode]:
        """Of each graph, in the order of compiling, without the folders of this machine."""
        graphs, left = [], MOST_BYTES
        for number, text in self._code.values():
            text = _PATH.sub("", text)
            fits = len(text) <= left
            left -= len(text) * fits
            graphs.append(GraphCode(number, len(text), gzip.compress(text.encode(), mtime=0) if fits else b""))
        return graphs
