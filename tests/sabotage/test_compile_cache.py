"""Compile caches that hold what they should not, do not hold what they should, or share less than all of it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from backend import paths
from backend.worker.compiler import own_cache
from tests.sabotage.saboteur import Sabotage, tests_of
from tests.sabotage.small_models import llama
from tests.sabotage.test_compile import STATIC, forgotten  # noqa: F401

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(900)]
COMPILED = (*STATIC, ("compile", "default"))


@contextmanager
def filled_all_the_same() -> Iterator[None]:
    """An "empty" cache gets what other workers have compiled, one file at least."""
    more = paths.private_folder("compiled") / "inductor" / "zz" / "sabotage"
    more.parent.mkdir(parents=True, exist_ok=True)
    more.write_text("x")
    plain = own_cache._fill
    try:
        with mock.patch.object(own_cache, "_fill", lambda folder, shared, kind: plain(folder, shared, "torch")):
            yield
    finally:
        more.unlink(missing_ok=True)


@contextmanager
def neither_saved_nor_loaded() -> Iterator[None]:
    import torch

    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(torch.compiler, "save_cache_artifacts", lambda: None))
        patches.enter_context(mock.patch.object(torch.compiler, "load_cache_artifacts", lambda data: object()))
        yield


@contextmanager
def shared_with_nobody() -> Iterator[None]:
    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(own_cache, "_fill", lambda *_: own_cache.Filled()))
        patches.enter_context(mock.patch.object(own_cache, "publish", lambda kind: (0, 0)))
        yield


@contextmanager
def one_file_is_left_out() -> Iterator[None]:
    plain, left = own_cache._link, list[Path]()

    def link(path: Path, target: Path) -> None:
        if not left and path.suffix == ".py":
            left.append(path)
        if path not in left:
            plain(path, target)

    with mock.patch.object(own_cache, "_link", link):
        yield


def _cache(choice: str, manner: str, patch: Any) -> Sabotage:
    return Sabotage("compile_cache", choice, manner, patch, COMPILED, llama, tier="full")


SABOTEURS = [
    _cache("fresh", "it is filled all the same", filled_all_the_same),
    _cache("artefacts", "neither saved nor loaded", neither_saved_nor_loaded),
    _cache("torch", "shared with nobody", shared_with_nobody),
    _cache("torch", "one file is left out", one_file_is_left_out),
]
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)
