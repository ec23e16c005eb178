"""Runs the tests of a file in one process, and several files at once."""

import os
from collections import Counter
from typing import Any

import pytest

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
    "cli/test_",
    "export/test_",
    "engine/test_bench",
)
"""Files that take more than 20 s, the longest first: begun first, so that no process still has one to do when the
others have ended."""


def pytest_configure(config: pytest.Config) -> None:
    """The process that starts the others gives them a core each."""
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(_InOrder())
    elif getattr(config.option, "numprocesses", None):
        os.environ.setdefault("OMP_NUM_THREADS", "1")


class _InOrder:
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Of those that run: long files first, then the others by their number of tests."""
        many = Counter(item.path for item in items)
        items.sort(key=lambda item: (_rank(item), -many[item.path], str(item.path)))


def _rank(item: pytest.Item) -> int:
    """Place of an item's file among those that take long; behind them all for the others."""
    return next((rank for rank, part in enumerate(LONG) if part in str(item.path)), len(LONG))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test belongs to one tier: what is full is not slow as well, be it one case of a slow test or in a file of slow
    tests."""
    if config.option.markexpr == "slow":
        full = [item for item in items if item.get_closest_marker("full")]
        config.hook.pytest_deselected(items=full)
        items[:] = [item for item in items if not item.get_closest_marker("full")]


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
    one_app = "not slow" in config.option.markexpr or len(config.option.tx) <= 2

    class ByFile(LoadGroupScheduling):  # type: ignore[misc]
        """What a file's fixtures start is started once; a test with a group of its own goes with its group.

        The quick tests of pages are so few that they stay in one process: its app and its browser are the only ones.
        The slow ones do where there are two processes: with more of them the others would wait for that one.
        """

        def _split_scope(self, nodeid: str) -> str:
            group = super()._split_scope(nodeid)
            file = nodeid.partition("::")[0] if group == nodeid else group
            return "tests/browser" if one_app and file.startswith("tests/browser/") else file

    return ByFile(config, log)
