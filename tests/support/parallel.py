"""Runs the tests of a file in one process, several files at once, and tests of wall-clock time alone."""

import fcntl
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

PATH = "TOKENDYNO_TEST_LOCK"
MOST_PROCESSES = 4

LONG = (
    "browser/test_compare",
    "browser/test_access",
    "soak/test_soak",
    "browser/test_visitors",
    "executors/test_",
    "browser/test_fit",
    "browser/test_arms",
    "sabotage/test_batching",
    "browser/test_look",
    "optimizations/test_scripts",
    "ui/gate/test_served",
    "browser/test_history",
    "sabotage/test_quantization",
    "browser/test_batching",
    "ablation/test_",
    "browser/test_worth",
    "project/test_smollm2",
    "cli/test_",
    "export/test_",
    "engine/test_bench",
)
"""Files that take more than 20 s, the longest first: begun first, so that no process still has one to do when the
others have ended."""


class Turns:
    """A lock file: while a serial test runs in one process, no other process runs any test.

    The first byte is a gate that a waiting serial test closes, so that others cannot starve it; the second is shared
    by parallel tests and held alone by a serial one.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("r+b")
        self._alone = False

    def enter(self, serial: bool) -> None:
        if self._alone:
            return
        fcntl.lockf(self._file, fcntl.LOCK_EX, 1, 0)
        fcntl.lockf(self._file, fcntl.LOCK_EX if serial else fcntl.LOCK_SH, 1, 1)
        fcntl.lockf(self._file, fcntl.LOCK_UN, 1, 0)
        self._alone = serial

    def leave(self, stay: bool) -> None:
        """`stay`: the next test is serial as well."""
        if not stay:
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, 1)
            self._alone = False


def pytest_configure(config: pytest.Config) -> None:
    """The process that starts the others makes the lock file; they take turns by it, and have a core each."""
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(_TakesTurns(Turns(Path(os.environ[PATH]))))
    elif getattr(config.option, "numprocesses", None):
        handle, path = tempfile.mkstemp(prefix="tokendyno-tests-")
        os.close(handle)
        os.environ[PATH] = path
        os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and PATH in os.environ:
        Path(os.environ.pop(PATH)).unlink(missing_ok=True)


class _TakesTurns:
    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Of those that run: serial tests, then long files, then the others by their number of tests."""
        many = Counter(item.path for item in items)
        items.sort(key=lambda item: (not is_serial(item), _rank(item), -many[item.path], str(item.path)))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Any:
        """Outside of pytest-timeout's clock: waiting for a turn counts as nobody's time."""
        self._turns.enter(is_serial(item))
        try:
            return (yield)
        finally:
            self._turns.leave(stay=nextitem is not None and is_serial(item) and is_serial(nextitem))


def is_serial(item: pytest.Item) -> bool:
    return item.get_closest_marker("serial") is not None


def _rank(item: pytest.Item) -> int:
    """Place of an item's file among those that take long; behind them all for the others."""
    return next((rank for rank, part in enumerate(LONG) if part in str(item.path)), len(LONG))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Serial tests go to one process, which runs them first, in one go. A test belongs to one tier: what is full is not
    slow as well, be it one case of a slow test or in a file of slow tests."""
    if config.option.markexpr == "slow":
        full = [item for item in items if item.get_closest_marker("full")]
        config.hook.pytest_deselected(items=full)
        items[:] = [item for item in items if not item.get_closest_marker("full")]
    for item in items:
        if is_serial(item):
            item.add_marker(pytest.mark.xdist_group("serial"))
    items.sort(key=lambda item: not is_serial(item))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Named files and tests of a GPU run in this process; else a process a core, four at most."""
    named = all(".py" in argument for argument in config.args)
    if named or "gpu" in config.option.markexpr.replace("not gpu", ""):
        return 0
    asked = os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS")
    return int(asked) if asked else min(len(os.sched_getaffinity(0)), MOST_PROCESSES)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadGroupScheduling

    if config.option.markexpr == "gpu":  # a process for each GPU, which takes whatever test is next
        return None

    config.option.loadscopereorder = False  # they come in order

    class ByFile(LoadGroupScheduling):  # type: ignore[misc]
        """What a file's fixtures start is started once; a test with a group of its own goes with its group."""

        def _split_scope(self, nodeid: str) -> str:
            group = super()._split_scope(nodeid)
            return nodeid.partition("::")[0] if group == nodeid else group

    return ByFile(config, log)
