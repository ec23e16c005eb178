"""Starting the page without what only costs time then. Nothing here imports Gradio: it is to be imported within."""

import gc
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

STUB_WRITER = "gradio.component_meta"
"""The module of Gradio that writes a type stub (.pyi) beside the source of each component when it is imported."""


@contextmanager
def quick_start() -> Iterator[None]:
    """Within it Gradio writes no stubs, and no garbage is collected.

    Stubs serve the editors of those who write components. Parsing and printing the sources of all components is 1.0 of
    the 2.3 s of CPU that importing Gradio takes, and the writing goes into site-packages. Gradio leaves out a class
    without a source file, which it learns from an OSError of `inspect.getfile`.

    What is made while starting lives as long as the process. Afterwards it is kept out of collections, which would
    otherwise go through all of it again and again (0.3 s until the page is served).
    """
    getfile, collected = inspect.getfile, gc.isenabled()

    def no_file_for_stubs(subject: Any) -> str:
        if sys._getframe(1).f_globals.get("__name__") == STUB_WRITER:
            raise OSError(f"no stub is wanted of {subject}")
        return getfile(subject)

    inspect.getfile = no_file_for_stubs  # type: ignore[assignment]
    gc.disable()
    try:
        yield
    finally:
        inspect.getfile = getfile
        gc.freeze()
        if collected:
            gc.enable()
