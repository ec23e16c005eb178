"""What a Python that this program starts imports from, and what is told of its last words."""

import os
import py_compile
import site
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from tokendyno.backend import child_python
from tokendyno.backend.child_python import import_variables, last_words, python_command
from tokendyno.backend.models.counting import bare_environment
from tokendyno.backend.paths import ROOT


@pytest.mark.parametrize("given", ["", os.pathsep, f"{os.pathsep}/cluster", f"/cluster{os.pathsep}"])
def test_an_empty_entry_of_pythonpath_is_not_the_folder_of_the_user(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", given)
    assert import_variables()["PYTHONPATH"].split(os.pathsep) == [str(ROOT), *(["/cluster"] * ("/cluster" in given))]


def test_packages_that_come_by_pythonpath_reach_the_process_that_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its working folder is another one, so a relative entry would lead elsewhere there."""
    (tmp_path / "packages").mkdir()
    (tmp_path / "packages" / "brought_by_the_cluster.py").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "packages")
    command = python_command("brought_by_the_cluster")
    assert subprocess.run(command, env=bare_environment(), cwd=ROOT, timeout=60).returncode == 0


def test_installed_into_site_packages_it_leaves_pythonpath_before_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the process itself: else another torch would run there than the one of PYTHONPATH."""
    monkeypatch.setattr(child_python, "IMPORTED_FROM", Path(site.getsitepackages()[0]).resolve())
    monkeypatch.setenv("PYTHONPATH", "/cluster")
    assert import_variables()["PYTHONPATH"] == "/cluster"


def test_the_last_words_are_the_error_of_a_traceback_without_secrets() -> None:
    lines = ["Traceback (most recent call last):", '  File "x.py", line 1', "OSError: hf_AbCdEf1234567890 failed", ""]
    assert last_words(lines) == "OSError: [redacted] failed"
    assert last_words(["", " "]) == ""


@pytest.mark.parametrize(("written", "kept"), [(True, False), (False, True)])
def test_bytecode_of_a_torch_that_has_none_is_kept_in_the_cache(
    written: bool, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container's image whose packages were installed without, and whose Python is told to write none."""
    module = tmp_path / "__init__.py"
    module.touch()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(child_python, "find_spec", lambda name: ModuleSpec(name, None, origin=str(module)))
    if written:
        py_compile.compile(str(module))
    variables = import_variables()
    assert variables.get("PYTHONDONTWRITEBYTECODE") == ("" if kept else None)
    assert ("PYTHONPYCACHEPREFIX" in variables) is kept
