"""`tools/mutants.py`: what it changes, and whose word it takes."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from tools.mutants import closeness
from tools.mutation import sites, warm
from tools.mutation.judge import Judge

PRODUCT = '''"""Two functions; no test executes the second, and none tells the last limit apart from another."""

LIMIT = 3


def small(
    count: int,
) -> bool:
    inside = lambda: (  # noqa: E731
        count
        < LIMIT
    )
    return inside() and count >= -10


def forgotten(count: int) -> bool:
    return count == 1
'''
TESTS = """from backend.predict.product import small


def test_small():
    assert small(2) and not small(3)


def test_of_its_own_making():
    assert small(2) and not small(3) and False
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in (("backend/predict/product.py", PRODUCT), ("tests/backend/predict/test_product.py", TESTS)):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\npythonpath = ['.']\n")
    return tmp_path


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("product", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("after", "expected"), [("count <= LIMIT", [True, True, False]), ("inside() or count >= -10", [True, True, True])]
)
def test_a_live_function_gets_the_mutated_code(tree: Path, after: str, expected: list[bool]) -> None:
    product = load(tree / "backend/predict/product.py")
    live = warm.functions(tree)
    site = next(site for site in sites.find(tree, ["backend"]) if site.after == after)
    warm.mutate(site, tree, live)
    assert [product.small(count) for count in (2, 3, 4)] == expected
    assert product.forgotten(1) and not product.forgotten(2)


def test_a_mutation_keeps_all_that_follows_on_its_line(tree: Path) -> None:
    source = PRODUCT.encode()
    for site in sites.find(tree, ["backend"]):
        changed = site.applied(source)
        assert changed != source and changed.count(b"\n") == source.count(b"\n"), site


def test_a_test_that_fails_without_the_mutation_kills_nothing() -> None:
    def first_failure(names: Sequence[str], site: sites.Site | None) -> str:
        return next((name for name in names if name == "broken" or (name == "good" and site)), "")

    site = sites.Site("a.py", 1, 1, False, "f", "integer", "1", "2", 0, 1)
    judge = Judge(first_failure)
    assert judge.killer(site, ["dull", "broken", "good"]) == "good"
    assert judge.killer(site, ["broken", "dull"]) == ""


def test_tests_that_mirror_the_module_are_closest() -> None:
    near, far = "tests/backend/predict/test_kv.py::test_bytes", "tests/backend/views/test_kv.py::test_text"
    assert closeness("backend/predict/kv.py", near) > closeness("backend/predict/kv.py", far)


@pytest.mark.slow
def test_the_whole_tool(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    command = [sys.executable, "tools/mutants.py", "--root", str(tree), "--paths", "backend/predict", "--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": ""}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=200, env=environment)
    assert ran.returncode == 3, ran.stderr  # fewer sites than the 300 that it would draw
    by_change = {result["key"].split(" | ")[2]: result for result in json.loads(out.read_text())}
    assert {change: result["status"] for change, result in by_change.items()} == {
        "3 -> 4": "killed",
        "3 -> 6": "killed",
        "count < LIMIT -> count <= LIMIT": "killed",
        "inside() and count >= -10 -> inside() or count >= -10": "killed",
        "count >= -10 -> count > -10": "survived",
        "10 -> 11": "survived",
        "10 -> 20": "survived",
        "count == 1 -> count != 1": "uncovered",
        "1 -> 2": "uncovered",
    }
    assert all(result["by"].endswith("test_small") for result in by_change.values() if result["status"] == "killed")
