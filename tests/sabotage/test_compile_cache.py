"""compile_cache: it holds what it should not, or does not hold what it should."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest import mock

import torch

from tests.sabotage.saboteur import table, tests_of
from tests.sabotage.test_compile import COMPILES, COMPILING, forgotten  # noqa: F401
from tokendyno.backend import paths
from tokendyno.backend.worker.compiler import own_cache


@contextmanager
def filled_all_the_same() -> Iterator[None]:
    """An "empty" cache gets what other workers have compiled, one file at least."""
    file = paths.private_folder("compiled") / "inductor" / "zz" / "sabotage"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("x")
    original = own_cache._fill
    try:
        with mock.patch.object(own_cache, "_fill", lambda folder, shared, kind: original(folder, shared, "torch")):
            yield
    finally:
        file.unlink(missing_ok=True)


@contextmanager
def neither_saved_nor_loaded() -> Iterator[None]:
    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(torch.compiler, "save_cache_artifacts", lambda: None))
        patches.enter_context(mock.patch.object(torch.compiler, "load_cache_artifacts", lambda data: object()))
        yield


@contextmanager
def shared_with_nobody() -> Iterator[None]:
    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(own_cache, "_fill", lambda *_: 0))
        patches.enter_context(mock.patch.object(own_cache, "publish", lambda kind: 0))
        yield


SABOTEURS = table(
    "compile_cache",
    {
        "fresh": {"it is filled all the same": filled_all_the_same},
        "artefacts": {"neither saved nor loaded": neither_saved_nor_loaded},
        "torch": {"shared with nobody": shared_with_nobody},
    },
    {"cache": "static", "compile": "default"},
    tier=COMPILING,
)
test_sabotage_turns_a_row, test_the_control_is_verified = tests_of(SABOTEURS, *COMPILES)
