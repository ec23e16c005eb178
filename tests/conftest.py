"""Fixtures shared by all tests."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backend.engine import Bench
from backend.models import ModelFacts
from tests.scripts import Scripts, small_models


def pytest_configure(config: pytest.Config) -> None:
    """Only `-m gpu` uses a GPU: all other tests measure the same on every machine."""
    if config.option.markexpr != "gpu":
        os.environ["TOKENDYNO_DEVICE"] = "cpu"


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scripts]:
    """Runs exported scripts."""
    made = Scripts(tmp_path_factory.mktemp("scripts"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[ModelFacts]:
    """Small ones, one of which every choice that runs here can be tried with."""
    return small_models(tmp_path_factory.mktemp("models"))


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
