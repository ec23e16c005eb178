"""The bench's own folder: private, and without leftovers of processes that are gone."""

import os
import platform
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from tests.support.processes import wait_for
from tests.support.worker import Talk
from tokendyno.backend import paths
from tokendyno.backend.engine.executor import Died
from tokendyno.backend.errors import InputError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOKENDYNO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_lies_where_the_environment_says_else_in_the_home(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert paths.cache_folder() == cache
    monkeypatch.setenv("TOKENDYNO_CACHE", "")
    assert paths.cache_folder() == Path.home() / ".cache" / "tokendyno"


def test_a_folder_is_made_for_this_user_alone_and_an_open_one_is_closed(cache: Path) -> None:
    assert mode(paths.private_folder("artefacts")) == 0o700
    (cache / "artefacts").chmod(0o777)
    assert mode(paths.private_folder("artefacts")) == 0o700


def test_a_folder_that_cannot_be_made_is_a_sentence(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write_text("a file in the way")
    with pytest.raises(InputError, match="TOKENDYNO_CACHE"):
        paths.private_folder("artefacts")


@pytest.mark.parametrize(("bits", "private"), [(0o600, True), (0o644, True), (0o620, False), (0o602, False)])
def test_a_file_that_others_can_write_is_not_private(tmp_path: Path, bits: int, private: bool) -> None:
    file = tmp_path / "file"
    file.touch()
    file.chmod(bits)
    assert paths.is_private(file) is private


def test_a_scratch_folder_is_empty_and_ends_with_its_process(cache: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    left, living = (cache / "scratch" / f"{platform.node()}-{pid}" for pid in (ended.pid, os.getppid()))
    elsewhere = cache / "scratch" / f"{platform.node()}x-{ended.pid}"
    for folder in (left, living, elsewhere):
        folder.mkdir(parents=True)
    mine = paths.make_scratch()
    (mine / "code.py").touch()
    assert paths.make_scratch() == mine and list(mine.iterdir()) == [] and mode(mine) == 0o700
    assert not left.exists() and living.exists() and elsewhere.exists(), "another host's processes are not known here"
    paths.remove_scratch(os.getpid())
    paths.remove_scratch(os.getpid())
    assert not mine.exists() and living.exists()


@pytest.mark.parametrize("how", ["ended", "killed"])
def test_a_workers_scratch_folder_goes_with_it_however_it_went(cache: Path, how: str) -> None:
    talk = Talk(wait=False)
    wait_for(lambda: talk.worker.pids, what="the worker to be forked")
    folder = paths.scratch_folder(talk.worker.pid)
    (folder / "inductor").mkdir(parents=True)
    if how == "killed":
        os.kill(talk.worker.pid, signal.SIGKILL)
        talk.until(Died)
    else:
        talk.end()
    assert not folder.exists()
    talk.end()
