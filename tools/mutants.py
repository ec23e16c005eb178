"""Do the tests notice small mistakes? `python -m tools.mutants --seed 10 --count 300 --out mutants.json`.

Changes one condition or constant of the product at a time, in a copy of the tree, and runs the tests that execute that
line and start no process, those that mirror its module first. Prints each mutant as killed, survived, or uncovered (no
such test executes it), and rewrites `--out` after each; a later call with the same `--out` goes on from there. Which
tests execute which lines is recorded once, beside `--out`.
"""

import argparse
import ast
import contextlib
import hashlib
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PATHS = ["backend/optimizations", "backend/predict", "backend/runs", "backend/arms"]
NOT_ASKED = (
    "cli",
    "engine",
    "executors",
    "library",
    "serving",
    "worker",
    "hardware/test_bandwidth.py",
    "hardware/test_machine.py",
)
"""Tests of processes, of loaded models and of this machine, below tests/backend."""
OPTIONS = ["-q", "-o", "addopts=", "-m", "not slow and not full and not gpu", "-p", "no:cacheprovider"]
for _warning in ("PytestAssertRewriteWarning", "PytestUnraisableExceptionWarning"):  # would end the whole run
    OPTIONS += ["-W", f"ignore::pytest.{_warning}"]
DECLARED = "backend/optimizations/axes"
READERS = (
    "tests/backend/optimizations/test_recorded_rules.py",
    "tests/backend/optimizations/test_declarations.py",
    "tests/backend/arms/test_remedies.py",
)
"""What axes declare is read by tests that execute no line of theirs."""
PAIRS = [(ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)]
SWAPS: dict[type[ast.AST], Any] = {
    operator: other for pair in [*PAIRS, (ast.And, ast.Or)] for operator, other in (pair, pair[::-1])
}


class Mutant(NamedTuple):
    """One change. `start`, `end`: byte offsets of the expression; `at_import`: it runs when its module is imported."""

    path: str
    line: int
    last_line: int
    at_import: bool
    before: str
    after: str
    start: int
    end: int

    @property
    def key(self) -> str:
        return f"{self.path}:{self.line}:{self.start} {self.before} -> {self.after}"


# --- what can be changed ----------------------------------------------------------------------------


def mutants(tree: Path, path: Path) -> Iterator[Mutant]:
    """Of one file; annotations, decorators and f-strings are left alone."""
    source = path.read_bytes()
    starts = [0]
    for text in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(text))

    def walk(node: ast.AST, at_import: bool) -> Iterator[Mutant]:
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            return
        if isinstance(node, ast.expr):
            assert node.end_lineno is not None and node.end_col_offset is not None
            begin, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
            where = (str(path.relative_to(tree)), node.lineno, node.end_lineno, at_import)
            for changed in changes(node):
                after = ast.unparse(ast.fix_missing_locations(changed))
                yield Mutant(*where, ast.unparse(node), after, begin, end)
        inside = at_import and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns", "decorator_list"):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        yield from walk(child, inside)

    yield from walk(ast.parse(source), True)


def changes(node: ast.expr) -> Iterator[ast.expr]:
    """Other expressions in this one's place."""
    match node:
        case ast.Compare(left, operators, right):
            for index, operator in enumerate(operators):
                swapped: Any = [*operators[:index], SWAPS[type(operator)](), *operators[index + 1 :]]
                yield ast.Compare(left, swapped, right)
        case ast.BoolOp(operator, values):
            other: Any = SWAPS[type(operator)]()
            yield ast.BoolOp(other, values)
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.IfExp(test, then, otherwise):
            yield ast.IfExp(test, otherwise, then)
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() as value):
            yield ast.Constant(value + 1)
            if value > 2:
                yield ast.Constant(2 * value)
        case ast.Constant(float() as value):
            yield ast.Constant(2 * value if value else 1.0)


@contextlib.contextmanager
def applied(tree: Path, mutant: Mutant) -> Iterator[None]:
    """The changed file, whose other lines stay where they are, and afterwards the file as it was."""
    file = tree / mutant.path
    source = file.read_bytes()
    lines = source.count(b"\n", mutant.start, mutant.end)
    new = f"({mutant.after}".encode() + b"\n" * lines + b")"
    file.write_bytes(source[: mutant.start] + new + source[mutant.end :])
    os.utime(file, (1, 1))  # so that the compiled original is not taken for it
    try:
        yield
    finally:
        file.write_bytes(source)


# --- tests in forked children, which find the heavy packages imported -------------------------------


class NoProcesses:
    """Skips a test as soon as it starts a process: those take seconds each."""

    def pytest_runtest_setup(self) -> None:
        subprocess.Popen.__init__ = lambda *_, **__: pytest.skip("starts a process")  # type: ignore[method-assign]


class Recorder(NoProcesses):
    """Notes for each passing test the lines of the product that it executes and the seconds it takes."""

    def __init__(self, tree: Path) -> None:
        self._prefixes = tuple(f"{tree / path}/" for path in PATHS)
        self._root = len(f"{tree}/")
        self._lines: set[tuple[str, int]] = set()
        self.tests: dict[str, set[tuple[str, int]]] = {}
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: list[str] = []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        for name, module in list(sys.modules.items()):
            for value in list(vars(module).values()) if name.startswith("tokendyno.") else []:
                if callable(clear := getattr(value, "cache_clear", None)):
                    clear()  # so that each test executes what it needs
        self._lines = self.tests[item.nodeid] = set()
        sys.settrace(self._on_call)
        threading.settrace(self._on_call)
        yield
        sys.settrace(None)
        threading.settrace(None)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if not report.passed:
            self.failed.append(report.nodeid)

    def _on_call(self, frame: Any, event: str, argument: object) -> Any:
        if not frame.f_code.co_filename.startswith(self._prefixes):
            return None
        lines, path = self._lines, frame.f_code.co_filename[self._root :]

        def on_line(frame: Any, event: str, argument: object) -> Any:
            lines.add((path, frame.f_lineno))
            return on_line

        return on_line(frame, event, argument)

    def coverage(self) -> dict[str, Any]:
        """By test: seconds, and lines by file."""
        coverage: dict[str, Any] = {}
        for name in self.tests.keys() - set(self.failed):
            lines: dict[str, list[int]] = defaultdict(list)
            for path, line in sorted(self.tests[name]):
                lines[path].append(line)
            coverage[name] = {"seconds": self.seconds[name], "lines": lines}
        return coverage


class First(NoProcesses):
    """Runs only these tests, in this order."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = {name: place for place, name in enumerate(names)}
        self.failed = ""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self._names]
        items[:] = sorted(chosen, key=lambda item: self._names[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid


def in_child(tree: Path, act: Callable[[], Any], limit_s: float) -> Any:
    """What `act` returns in a forked child that stands in `tree`, or None where it dies or takes longer. What it prints
    goes into a file beside the tree."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.chdir(tree)
        sys.path[0] = str(tree)
        sys.dont_write_bytecode = True
        log = os.open(tree.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        try:
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(json.dumps(act()).encode())
        except BaseException:
            os.write(log, traceback.format_exc().encode())
        os._exit(0)
    os.close(writer)
    timer = threading.Timer(limit_s, os.killpg, [pid, signal.SIGKILL])
    timer.start()
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    timer.cancel()
    os.waitpid(pid, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    return json.loads(answer) if answer else None


def record(tree: Path, tests: Sequence[str]) -> Any:
    """Which tests execute which lines."""

    def act() -> dict[str, Any]:
        recorder = Recorder(tree)
        ignored = [f"--ignore=tests/backend/{name}" for name in NOT_ASKED]
        pytest.main([*OPTIONS, "--timeout=120", *ignored, *tests], plugins=[recorder])
        return recorder.coverage()

    coverage = in_child(tree, act, 3600)
    assert coverage, f"no test passed while lines were recorded: {tree.with_suffix('.log').read_text()[-2000:]}"
    return coverage


def select(mutant: Mutant, tests: dict[str, Any]) -> list[str]:
    """Tests that execute the expression; for what runs at import, those that execute anything of the file, and of what
    an axis declares `READERS`. Those that mirror the module come first."""
    lines = set(range(mutant.line, mutant.last_line + 1))
    declared = mutant.at_import and mutant.path.startswith(DECLARED)
    module = mutant.path.removeprefix("backend/").removesuffix(".py")

    def late(name: str) -> tuple[bool, int, float]:
        mirrored = name.partition("::")[0].removeprefix("tests/backend/").replace("test_", "").removesuffix(".py")
        near = len(os.path.commonpath([module, mirrored]))
        return not (declared and name.startswith(READERS)), -near, tests[name]["seconds"]

    chosen: list[str] = []
    for name in sorted(tests, key=late):
        executed = tests[name]["lines"].get(mutant.path, ())
        if (executed and (mutant.at_import or lines & set(executed))) or (declared and name.startswith(READERS)):
            chosen.append(name)
    return chosen


def killer(tree: Path, mutant: Mutant, names: Sequence[str], limit_s: float) -> str:
    """The first of these tests that fails on the mutant, or what else ended them; "" if all pass."""

    def act() -> tuple[int, str]:
        first = First(names)
        files = list(dict.fromkeys(name.partition("::")[0] for name in names))
        return int(pytest.main([*OPTIONS, "-x", *files], plugins=[first])), first.failed

    with applied(tree, mutant):
        answer = in_child(tree, act, limit_s)
    if answer is None:
        return "time limit, or the process died"
    code, failed = answer
    return failed or ("" if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) else f"pytest's {code}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=10)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--paths", nargs="*", default=PATHS, help="folders to mutate")
    parser.add_argument("--tests", nargs="*", default=["tests/backend"])
    parser.add_argument("--limit-s", type=float, default=1e9, help="start no further mutant after so many seconds")
    options = parser.parse_args()
    out, until_s = options.out.resolve(), time.monotonic() + options.limit_s
    os.environ.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder).resolve() / "tree"
        ignored = shutil.ignore_patterns("__pycache__", ".*", "shared", "*.egg-info")
        shutil.copytree(Path(__file__).resolve().parents[1], tree, symlinks=True, ignore=ignored)
        os.environ["PYTHONPATH"] = str(tree)
        for name in ("numpy", "msgspec", "torch", "transformers"):
            importlib.import_module(name)
        recorded = out.with_suffix(".coverage.json")
        tests = json.loads(recorded.read_text()) if recorded.exists() else record(tree, options.tests)
        recorded.write_text(json.dumps(tests))
        files = [file for path in options.paths for file in sorted((tree / path).rglob("*.py"))]
        possible = [mutant for file in files for mutant in mutants(tree, file)]
        possible.sort(key=lambda mutant: hashlib.sha256(f"{options.seed} {mutant.key}".encode()).digest())
        chosen = possible[: options.count]
        print(f"{len(tests)} tests that pass and start no process; {len(chosen)} of {len(possible)} mutants")
        results = json.loads(out.read_text()) if out.exists() else {}
        for mutant in chosen:
            if mutant.key in results or time.monotonic() > until_s:
                continue
            names = select(mutant, tests)
            limit_s = 60 + 4 * sum(tests[name]["seconds"] for name in names)
            by = killer(tree, mutant, names, limit_s) if names else ""
            status = ("killed" if by else "survived") if names else "uncovered"
            results[mutant.key] = {"status": status, "by": by}
            print(f"{len(results):4} {status:9} {mutant.key[:100]}", flush=True)
            out.write_text(json.dumps(results, indent=1))
    counted = Counter(results[mutant.key]["status"] for mutant in chosen if mutant.key in results)
    print(f"{counted.total()} of {len(chosen)}: " + ", ".join(f"{count} {status}" for status, count in counted.items()))
    return 0 if counted.total() == len(chosen) else 3


if __name__ == "__main__":
    raise SystemExit(main())
