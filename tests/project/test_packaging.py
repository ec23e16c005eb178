"""One name in site-packages, under which nothing is read of the folder that the user stands in; a source archive that
can be built and tested; and a copy of the repository that nobody installed, as on a Space."""

import os
import shutil
import site
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.served import served
from tokendyno.backend.paths import ROOT

FOLDERS = ("backend", "ui", "presets")
BESIDE = ("docs", "tests", "tools")
"""Folders that the source archive has and the wheel has not."""
MOST_BYTES = 20_000_000
WRITTEN = (".pyc", ".pyi")
"""Files that Python and Gradio write at run time."""
USERS_OWN = ("app.py", "backend/__init__.py", "presets/__init__.py", "random.py", "tokendyno.py", "ui/__init__.py")
BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"

pytestmark = pytest.mark.slow


def wanted() -> set[str]:
    """Files of the package, including kernels in folders named "build"; of JavaScript the bundles."""
    files = (file for name in FOLDERS for file in (ROOT / name).rglob("*") if file.is_file())
    own = {str(one.relative_to(ROOT)) for one in files if one.suffix not in WRITTEN and one.parent.name != "js"}
    return {f"tokendyno/{name}" for name in (*own, "__init__.py", "__main__.py", "app.py")}


def build(kind: str, source: Path, folder: Path) -> Path:
    """An sdist or a wheel of these sources."""
    command = [sys.executable, "-c", BUILD, f"build_{kind}", str(folder)]
    ran = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return next(folder.glob("*.whl" if kind == "wheel" else "*.tar.gz"))


def environment(folder: Path) -> Path:
    """An empty virtual environment. Its site-packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return next(folder.glob("lib/python*/site-packages"))


def add_dependencies(packages: Path) -> None:
    """A folder that a .pth names is searched; its own .pth files, such as that of an editable tokendyno, are not."""
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository as it is cloned."""
    folder = tmp_path_factory.mktemp("cloned") / "clone"
    left_out = shutil.ignore_patterns("__pycache__", "*.pyi", ".*", "*.egg-info", "dist", "node_modules")
    shutil.copytree(ROOT, folder, symlinks=True, ignore=left_out)
    shutil.rmtree(folder / "build", ignore_errors=True)
    return folder


@pytest.fixture(scope="module")
def wheel(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", clone, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def unpacked(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The content of the source archive."""
    folder = tmp_path_factory.mktemp("sdist")
    made = build("sdist", clone, folder)
    assert made.stat().st_size < MOST_BYTES
    subprocess.run(["tar", "-xf", str(made), "-C", str(folder)], check=True)  # tarfile warns, or knows no filter
    return next(one for one in folder.iterdir() if one.is_dir())


@pytest.fixture(scope="module")
def packages(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site-packages that the wheel was installed into, alone."""
    found = environment(tmp_path_factory.mktemp("installed") / "venv")
    pip = [sys.executable, "-m", "pip", "-q", "--python", str(found.parents[2] / "bin" / "python")]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", "--no-compile", str(wheel)], check=True)
    return found


def test_the_source_archive_holds_the_package_its_documents_and_its_tests(clone: Path, unpacked: Path) -> None:
    held = {str(file.relative_to(unpacked)) for file in unpacked.rglob("*") if file.is_file()}
    about = {"LICENSE", "MANIFEST.in", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"}
    about |= {"ARCHITECTURE.md", "CHANGELOG.md"}
    beside = {str(file.relative_to(clone)) for name in BESIDE for file in (clone / name).rglob("*") if file.is_file()}
    assert {name for name in held if not name.startswith("tokendyno.egg-info/")} == wanted() | about | beside


@pytest.mark.full
def test_tests_of_the_source_archive_run_where_it_is_unpacked(unpacked: Path) -> None:
    """A document and the package are found; what checks the repository is left out."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "tests/project", "tests/backend/hosting/test_limits.py"]
    env = {**os.environ, "PYTHONPATH": ""}
    ran = subprocess.run(command, cwd=unpacked, env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-2000:]


@pytest.mark.full
def test_a_wheel_of_the_source_archive_is_that_of_the_repository(unpacked: Path, wheel: Path, tmp_path: Path) -> None:
    def content(made: Path) -> dict[str, int]:
        with zipfile.ZipFile(made) as archive:
            return {one.filename: one.CRC for one in archive.infolist() if not one.filename.endswith("/RECORD")}

    assert content(build("wheel", unpacked, tmp_path)) == content(wheel)
    assert wheel.stat().st_size < MOST_BYTES


def test_pip_puts_one_name_into_site_packages(packages: Path) -> None:
    files = {str(file.relative_to(packages)) for file in packages.rglob("*") if file.is_file()}
    about = {name for name in files if name.partition("/")[0].endswith(".dist-info")}
    assert about and files - about == wanted()


def test_it_runs_in_a_folder_full_of_its_own_names(packages: Path, tmp_path: Path) -> None:
    add_dependencies(packages)
    for name in USERS_OWN:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("open(__file__ + '.executed', 'w')\n")
    program = packages.parents[2] / "bin" / "tokendyno"
    env = {**os.environ, "PYTHONPATH": "", "XDG_DATA_HOME": str(tmp_path / "data")}
    command = [str(program), "run", "--arm", "local-kernels", "--max-new-tokens", "4"]
    ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "RMSNorm by tokendyno-rmsnorm" in ran.stdout
    with served(tmp_path, env=env, begin=(str(program), "open", "--no-browser"), cwd=tmp_path) as page:
        assert page.ask("/").status == 200
    (tmp_path / "tokendyno.py").unlink()  # else Python itself would take it for the module that is named
    command = [str(program.with_name("python")), "-m", "tokendyno", "models"]
    ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert list(tmp_path.rglob("*.executed")) == []


@pytest.mark.full
def test_a_copy_without_the_links_runs_as_it_lies(clone: Path, tmp_path: Path) -> None:
    """What an upload to a Space keeps of a clone."""
    copy = tmp_path / "copy"
    shutil.copytree(clone, copy, symlinks=True)
    for link in (copy / "tokendyno").iterdir():
        if link.is_symlink():
            link.unlink()
    packages = environment(tmp_path / "venv")
    add_dependencies(packages)
    python, env = str(packages.parents[2] / "bin" / "python"), {**os.environ, "PYTHONPATH": ""}
    with served(tmp_path, env=env, begin=(python, "app.py"), cwd=copy) as page:
        assert page.ask("/").status == 200
    command = [python, "-m", "tokendyno", "run", "--max-new-tokens", "2", "--no-history"]
    ran = subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
