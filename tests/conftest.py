"""Fixtures shared by all tests."""

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.event_loops import pytest_unconfigure as pytest_unconfigure
from tests.support.scripts import Scripts, small_models
from tests.support.worker import Talk
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.executors import open_bench
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.worker.process import frozen_imports

pytest_plugins = ["tests.support.parallel"]
SET_BY_IMPORTS = {"RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "RAY_CLIENT_MODE", "TORCHINDUCTOR_CACHE_DIR"} - set(os.environ)
"""By Ray, and by bitsandbytes through torch's compiler."""


def pytest_configure(config: pytest.Config) -> None:
    """Only `-m gpu` uses a GPU: all other tests do the same on every machine."""
    data = tempfile.mkdtemp(prefix="tokendyno-tests-")  # what was measured on this machine before decides nothing
    os.environ["XDG_DATA_HOME"] = data
    os.environ["TOKENDYNO_IDLE_MEASURE"] = "off"  # nor what is measured while tests run
    os.environ.pop("COLUMNS", None)  # pytest-xdist gives its processes 80, to which tables would fold
    config.add_cleanup(lambda: shutil.rmtree(data, ignore_errors=True))
    if config.option.markexpr != "gpu":
        os.environ["TOKENDYNO_DEVICE"] = "cpu"
    elif worker := os.environ.get("PYTEST_XDIST_WORKER"):  # each has a GPU, of its own where there are enough
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        gpus = visible.split(",") if visible else [str(index) for index in range(_gpus())]
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus[int(worker.removeprefix("gw")) % len(gpus)]
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(
            signal.SIGINT, signal.default_int_handler
        )  # a shell's background jobs, and what they start, ignore it


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """What is imported and found stays until the end: collections of garbage, of which each run has several, leave it
    out."""
    with frozen_imports():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Workers are forked only for the environment in which the process that forks them began."""
    try:
        return (yield)
    finally:
        for name in SET_BY_IMPORTS:
            os.environ.pop(name, None)


def _gpus() -> int:
    """GPUs of this machine, at least 1. By NVML: asking the driver would settle which of them this process sees."""
    import pynvml

    try:
        pynvml.nvmlInit()
        return max(1, int(pynvml.nvmlDeviceGetCount()))
    except pynvml.NVMLError:
        return 1


@pytest.fixture(scope="session")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scripts]:
    """Runs exported scripts."""
    found = Scripts(tmp_path_factory.mktemp("scripts"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[ModelFacts]:
    """Small models; every choice that runs on this machine can be tried with one of them."""
    return small_models(tmp_path_factory.mktemp("models"))


@pytest.fixture
def make_bench() -> Iterator[Callable[..., Bench]]:
    """Starts benches, and ends them and their workers after the test."""
    started: list[Bench] = []

    def make(history: Path | None = None, prewarm: int = 0) -> Bench:
        bench = open_bench(history)
        bench.start(prewarm)
        started.append(bench)
        return bench

    yield make
    for bench in started:
        bench.close()


@pytest.fixture(scope="session")
def warm_worker() -> Iterator[Talk]:
    """One worker for all tests that only talk to it; a test that kills it or needs a fresh one starts its own."""
    talk = Talk()
    yield talk
    talk.end()


@pytest.fixture(scope="session")
def warm_bench() -> Iterator[Bench]:
    """One bench, without a history, for all tests that only submit runs or ask for verdicts."""
    bench = open_bench()
    bench.start()
    yield bench
    bench.close()
