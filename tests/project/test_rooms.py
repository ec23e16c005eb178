"""How the tree is kept in order: a true map, few loose files, contracts without exceptions, one set of dependencies."""

import re
import tomllib

from packaging.requirements import Requirement

from tokendyno.backend.paths import ROOT
from tools import space

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def tree_of_the_architecture() -> list[str]:
    """Every path that the tree in ARCHITECTURE.md names; folders end with a slash.

    A line holds one or more names, then two spaces or more and what they are for; two spaces of indentation are one
    folder deeper.
    """
    block = re.search(r"## The tree\n+```\n(.*?)```", ARCHITECTURE, re.DOTALL)
    assert block, "ARCHITECTURE.md has no tree"
    paths: list[str] = []
    parents: list[str] = []
    for line in block[1].splitlines():
        if not line.strip():
            continue
        depth = (len(line) - len(line.lstrip())) // 2
        names = re.split(r"\s{2,}", line.strip())[0].split()
        del parents[depth:]
        paths += ["".join(parents) + name for name in names]
        parents.append(names[-1])
    return paths


def test_every_file_and_folder_in_the_tree_of_the_architecture_is_there() -> None:
    paths = tree_of_the_architecture()
    assert {"app.py", "backend/", "tests/"} <= set(paths)
    missing = [p for p in paths if not ((ROOT / p).is_dir() if p.endswith("/") else (ROOT / p).is_file())]
    assert missing == []


def test_every_folder_and_loose_module_of_the_backend_is_in_the_tree_of_the_architecture() -> None:
    paths = set(tree_of_the_architecture())
    folders = {f"backend/{p.name}/" for p in (ROOT / "backend").iterdir() if p.is_dir() and p.name != "__pycache__"}
    modules = {f"backend/{p.name}" for p in (ROOT / "backend").glob("*.py") if not p.stem.startswith("__")}
    assert (folders | modules) - paths == set()


SPACE = {"python_version": "3.11"}
"""Of the front matter of README."""


def test_a_space_installs_what_the_package_depends_on() -> None:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert lines == space.requirements("cpu"), "a free Space has a CPU: python -m tools.space cpu"
    wanted = {Requirement(line).name for line in PYPROJECT["project"]["dependencies"]}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"pip install -e . {space.CPU_INDEX} " in readme
    for kind in space.KINDS:
        options = [line for line in space.requirements(kind) if line.startswith("--")]
        found = [Requirement(line) for line in space.requirements(kind)[1:] if line not in options]
        assert options == ([space.CPU_INDEX] if kind == "cpu" else [])
        assert {one.name for one in found} == wanted | ({"spaces"} if kind == "zerogpu" else set())
        there = [one for one in found if one.name == "torch" and (not one.marker or one.marker.evaluate(SPACE))]
        assert [one.specifier.contains("2.11.0") for one in there] == [True]
