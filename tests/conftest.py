"""Fixtures shared by all tests."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backend.engine import Bench


def pytest_configure(config: pytest.Config) -> None:
    """Only `-m gpu` uses a GPU: all other tests measure the same on every machine."""
    if config.option.markexpr != "gpu":
        os.environ["TOKENDYNO_DEVICE"] = "cpu"


@pytest.fixture
def make_bench() -> Iterator[Callable[..., Bench]]:
    """Makes benches that are at work, and ends them and their workers after the test."""
    made: list[Bench] = []

    def make(history: Path | None = None, prewarm: int = 0) -> Bench:
        bench = Bench(history)
        bench.start(prewarm)
        made.append(bench)
        return bench

    yield make
    for bench in made:
        bench.close()
