"""Detaching the profiler, with a library in place of CUPTI. tests/gpu/test_detach.py does it on a GPU."""

import ctypes
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tokendyno.backend.paths import ROOT

pytest.importorskip("torch")

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")

MAJOR = itertools.count(9001)  # a library once loaded stays, so each test has a version of its own


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> int:
    """The major version that torch says it was built for."""
    major = next(MAJOR)
    monkeypatch.setattr("torch.version.cuda", f"{major}.0")
    return major


def library(folder: Path, major: int, source: str) -> Path:
    name = f"libcupti.so.{major}"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-x", "c", "-", f"-Wl,-soname,{name}", "-o", str(folder / name)],
        input=source,
        text=True,
        check=True,
    )
    return folder / name


def load(folder: Path, major: int, source: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(library(folder, major, source)))


def detach() -> bool:
    from tokendyno.backend.worker.prove.detach import detach

    return detach()


@pytest.mark.parametrize(("code", "detached"), [(0, True), (999, False)])
def test_the_library_that_is_loaded_is_asked_once(tmp_path: Path, cuda: int, code: int, detached: bool) -> None:
    source = f"int asked; int cuptiFinalize(void) {{ asked++; return {code}; }}"
    loaded = load(tmp_path, cuda, source)
    assert detach() is detached
    assert ctypes.c_int.in_dll(loaded, "asked").value == 1


def test_a_library_that_torch_did_not_load_is_not_loaded(tmp_path: Path) -> None:
    """Its profiler would be another one."""
    library(tmp_path, 9999, "int cuptiFinalize(void) { return 0; }")
    script = "import torch; torch.version.cuda = '9999.0'\n"
    script += "from tokendyno.backend.worker.prove.detach import detach; print(detach())"
    env = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=env, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_library_without_the_call_cannot_be_detached(tmp_path: Path, cuda: int) -> None:
    load(tmp_path, cuda, "int other(void) { return 0; }")
    assert detach() is False


@pytest.mark.parametrize(("version", "detached"), [("12.5", False), ("12.6", True), ("13.0", True), (None, False)])
def test_where_captured_graphs_would_not_survive_it_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, detached: bool
) -> None:
    monkeypatch.setattr("torch.version.cuda", version)
    if version is not None:
        load(tmp_path, int(version.split(".")[0]), "int cuptiFinalize(void) { return 0; }")
    assert detach() is detached
