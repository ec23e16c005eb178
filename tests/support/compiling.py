"""Compiling in a test's own process: in a folder of its own, with what earlier tests have compiled."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tokendyno.backend import paths
from tokendyno.backend.worker.compiler.own_cache import HEADERS, VARIABLES


@contextmanager
def own_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The cache folder of the app is `folder`, but what workers share is the user's own: headers take long."""
    import torch

    (folder / "compiled").symlink_to(paths.private_folder("compiled"))
    monkeypatch.setenv("TOKENDYNO_CACHE", str(folder))
    for name in VARIABLES:
        monkeypatch.setenv(name, str(folder / name))  # both are as before after the test
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
    codecache: Any = sys.modules.get("torch._inductor.codecache")
    if codecache is not None:
        codecache._HEADER_DIR = str(paths.private_folder("compiled") / HEADERS)
        codecache._precompile_header.cache_clear()
