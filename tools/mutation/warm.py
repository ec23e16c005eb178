"""Tries mutants in forks of a process that has collected the tests already: its functions get their mutated code."""

import gc
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from . import runner
from .judge import Judge
from .sites import Site

Attempt = tuple[Site, list[str]]
"""A mutant, and the tests to run, in this order."""
Limit = Callable[[Sequence[str]], float]
"""Seconds that these tests may take at most."""
Report = Callable[[Site, str], None]
"""Is told of each mutant the test that killed it; "" where none did."""

A_DAY_S = 86_400.0


class Warm(runner.NoProcesses):
    """Collects once, then forks for each attempt."""

    def __init__(self, tree: Path, attempts: Iterable[Attempt], report: Report, limit: Limit, log: Path) -> None:
        self._tree = tree
        self._limit = limit
        self._attempts = attempts
        self._report = report
        self._log = log
        self._items: dict[str, pytest.Item] = {}
        self._functions: dict[str, list[FunctionType]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        self._functions = functions(self._tree)
        gc.freeze()  # a fork then copies less
        judge = Judge(self._first_failure)
        for site, names in self._attempts:
            self._report(site, judge.killer(site, [name for name in names if name in self._items]))
        return True

    def _first_failure(self, names: Sequence[str], site: Site | None) -> str:
        def act() -> str:
            if site:
                mutate(site, self._tree, self._functions)
            runner.clear_caches()
            return first_failure([self._items[name] for name in names])

        answer = runner.in_child(self._tree, act, self._limit(names), self._log)
        return runner.DIED if answer is None else str(answer)


def functions(tree: Path) -> dict[str, list[FunctionType]]:
    """The live functions of each file of the tree."""
    found: dict[str, list[FunctionType]] = defaultdict(list)
    gc.unfreeze()  # what froze objects for its own sake hid them
    for value in gc.get_objects():
        if type(value) is FunctionType and value.__code__.co_filename.startswith(str(tree)):  # asks no proxy
            found[value.__code__.co_filename].append(value)
    return found


def mutate(site: Site, tree: Path, live: dict[str, list[FunctionType]]) -> None:
    """Gives the live functions of the file the code that they have in the mutated source."""
    path = tree / site.path
    mutated = dict(_codes(compile(site.applied(path.read_bytes()), str(path), "exec")))
    for function in live[str(path)]:
        function.__code__ = mutated.get(_identity(function.__code__), function.__code__)


def _codes(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """Every code object inside another, nested ones too."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield _identity(constant), constant
            yield from _codes(constant)


def _identity(code: CodeType) -> tuple[str, int]:
    """A mutation keeps the lines of all that it does not change."""
    return code.co_qualname, code.co_firstlineno


def first_failure(items: Sequence[pytest.Item]) -> str:
    """Runs these tests until one fails, and names it; "" where none does."""
    failed: list[str] = []

    class Watch:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failed.append(report.nodeid)

    if items:
        items[0].config.pluginmanager.register(Watch())
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if failed:
            return failed[0]
    return ""


def run(tree: Path, attempts: Iterable[Attempt], files: Sequence[str], report: Report, limit: Limit, log: Path) -> None:
    """Tries all of them against tests of these files, in a process that imports the product once."""

    def act() -> int:
        options = [option for option in runner.OPTIONS if option != "-x"]
        plugin = Warm(tree, attempts, report, limit, log.with_suffix(".warm.log"))
        return int(pytest.main([*options, *files], plugins=[plugin]))

    ended = runner.in_child(tree, act, A_DAY_S, log)
    assert ended == pytest.ExitCode.OK, log.read_text()[-2000:]
