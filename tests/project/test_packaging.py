"""A wheel and a source archive contain every file that an installed tokendyno reads."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from backend.paths import ROOT

FOLDERS = ("backend", "ui", "presets")
LEFT_OUT = (".pyc", ".pyi")  # written at run time


def wanted() -> set[str]:
    """Files of the packages, including kernels in folders named "build"."""
    files = (file for name in FOLDERS for file in (ROOT / name).rglob("*") if file.is_file())
    return {str(file.relative_to(ROOT)) for file in files if file.suffix not in LEFT_OUT}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_what_is_built_contains_every_file(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("setuptools", minversion="77")
    source = tmp_path / "source"
    for name in FOLDERS:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyi"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "app.py"):
        shutil.copy(ROOT / name, source)
    code = f"import sys; from setuptools import build_meta; build_meta.build_{kind}(sys.argv[1])"
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=source, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    if kind == "sdist":
        with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
            held = {name.partition("/")[2] for name in archive.getnames()}
        assert wanted() | {"app.py", "LICENSE", "pyproject.toml"} <= held
        return
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert wanted() | {"app.py"} <= set(archive.namelist())
        archive.extractall(tmp_path / "installed")
    command = [sys.executable, "-m", "backend", "run", "--arm", "local-kernels", "--max-new-tokens", "4"]
    ran = subprocess.run(command, cwd=tmp_path / "installed", capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "RMSNorm by tokendyno-rmsnorm" in ran.stdout
