"""Runs pytest in forked children of one process that has imported the heavy packages already."""

import contextlib
import functools
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

OWN = ("backend", "ui", "tests", "tools", "app", "presets")
"""Packages of the product: a child imports them itself, so that it sees the mutated file."""
OPTIONS = [
    "-o",
    "addopts=",
    "-m",
    "not slow and not full and not gpu",
    "-p",
    "no:cacheprovider",
    "-q",
    "-x",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
    "-W",
    "ignore::pytest.PytestUnraisableExceptionWarning",  # what a skipped test leaves open would end the whole run
]


DIED = "time limit, or the process died"


class NoProcesses:
    """Skips a test as soon as it starts a process: those take seconds each."""

    def pytest_runtest_setup(self) -> None:
        subprocess.Popen.__init__ = _skip  # type: ignore[method-assign]


def _skip(*_: Any, **__: Any) -> None:
    pytest.skip("starts a process")


class Recorder(NoProcesses):
    """Notes for each passing test the lines of the product that it executes and the seconds it takes.

    What a fixture of a wider scope executes counts for every test of the file.
    """

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files
        self._collected: set[tuple[str, int]] = set()
        self._into = self._collected
        self._shared: dict[str, set[tuple[str, int]]] = defaultdict(set)
        self.lines: dict[str, set[tuple[str, int]]] = {}
        self.seconds: dict[str, float] = defaultdict(float)
        self._failed: set[str] = set()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_collection(self) -> Iterator[None]:
        sys.settrace(self._on_call)
        yield
        sys.settrace(None)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        clear_caches()
        self._into = self.lines[item.nodeid] = set()
        sys.settrace(self._on_call)
        threading.settrace(self._on_call)
        yield
        sys.settrace(None)
        threading.settrace(None)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[None]:
        before = self._into
        if fixturedef.scope != "function":
            self._into = self._shared[request.node.nodeid.partition("::")[0]]
        yield
        self._into = before

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if not report.passed:
            self._failed.add(report.nodeid)

    def _on_call(self, frame: FrameType, event: str, argument: object) -> Any:
        path = self._files.get(frame.f_code.co_filename)
        if path is None:
            return None
        into = self._into
        into.add((path, frame.f_lineno))

        def on_line(frame: FrameType, event: str, argument: object) -> Any:
            into.add((path, frame.f_lineno))
            return on_line

        return on_line

    def found(self) -> dict[str, Any]:
        """Seconds and executed lines (by file) of each passing test, the lines that collecting them executes, and
        the packages that were imported."""
        tests = {
            name: {"seconds": self.seconds[name], "lines": _by_file(lines | self._shared[name.partition("::")[0]])}
            for name, lines in self.lines.items()
            if name not in self._failed
        }
        heavy = [name for name in sys.modules if name.partition(".")[0] not in (*OWN, "__main__", "conftest")]
        return {"tests": tests, "collected": _by_file(self._collected), "modules": heavy}


def _by_file(lines: set[tuple[str, int]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for path, line in sorted(lines):
        found[path].append(line)
    return found


class Chosen(NoProcesses):
    """Runs only these tests and notes the first that fails."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = set(names)
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._names]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def clear_caches() -> None:
    """Of the product's functions, so that each test executes what it needs."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "backend":
            for value in list(vars(module).values()):
                if isinstance(value, functools._lru_cache_wrapper):
                    value.cache_clear()


def preload(modules: Sequence[str]) -> None:
    """Import what every child would import; one that fails to load alone is left to the tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in modules:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)


def in_child(tree: Path, act: Callable[[], Any], limit_s: float, log: Path) -> Any:
    """What `act` returns in a forked child that stands in `tree`, or None where it dies or takes longer."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.close(reader)
        os.chdir(tree)
        sys.path.insert(0, str(tree))
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        try:
            answer = json.dumps(act()).encode()
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(answer)
        except BaseException:
            os.write(output, traceback.format_exc().encode())
        os._exit(0)
    os.close(writer)
    timer = threading.Timer(limit_s, _kill_group, [pid])
    timer.start()
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    timer.cancel()
    os.waitpid(pid, 0)
    _kill_group(pid)
    return json.loads(answer) if answer else None


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def record(tree: Path, tests: Sequence[str], ignored: Sequence[str], sources: Sequence[Path], log: Path) -> Any:
    """Which test executes which lines of these files, from one traced run."""

    def act() -> Any:
        sys.dont_write_bytecode = False
        recorder = Recorder({str(path): str(path.relative_to(tree)) for path in sources})
        ignore = [f"--ignore={path}" for path in ignored]
        options = [option for option in OPTIONS if option != "-x"]
        pytest.main([*options, "--timeout=120", *ignore, *tests], plugins=[recorder])
        return recorder.found()

    return in_child(tree, act, 3600, log)


def first_failure(tree: Path, names: Sequence[str], limit_s: float, log: Path) -> str:
    """Runs these tests in a new process until one fails, and names it; "" where none does.

    Where pytest ends otherwise, as when the product cannot be imported, tells how.
    """
    files = list(dict.fromkeys(name.partition("::")[0] for name in names))

    def act() -> dict[str, Any]:
        sys.dont_write_bytecode = True
        chosen = Chosen(names)
        code = pytest.main([*OPTIONS, *files], plugins=[chosen])
        return {"code": int(code), "failed": chosen.failed}

    answer = in_child(tree, act, limit_s, log)
    if answer is None:
        return DIED
    if answer["failed"]:
        return str(answer["failed"][0])
    ended_well = answer["code"] in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    return "" if ended_well else f"pytest's exit code {answer['code']}"
