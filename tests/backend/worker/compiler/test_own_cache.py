"""A worker's own compile cache: only what is complete gets to other workers, whenever one of them is killed."""

import os
from pathlib import Path

import psutil
import pytest

from tokendyno.backend import paths
from tokendyno.backend.worker.compiler import own_cache
from tokendyno.backend.worker.compiler.own_cache import is_torn, publish

LIBRARY = Path(psutil._psplatform.cext.__file__).read_bytes()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOKENDYNO_CACHE", str(tmp_path / "cache"))
    for name in own_cache.VARIABLES:
        monkeypatch.setenv(name, "as before")
    return tmp_path / "cache"


def put(folder: Path, **files: bytes) -> None:
    for name, content in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("content", "torn"),
    [
        (b"", True),
        (b"x", False),
        (LIBRARY, False),
        (LIBRARY[:-1], True),
        (LIBRARY[:4096], True),
        (LIBRARY[:20], True),
        (LIBRARY + b"signature", False),
    ],
)
def test_a_file_that_was_not_written_to_its_end_is_told_by_its_bytes(
    tmp_path: Path, content: bytes, torn: bool
) -> None:
    (tmp_path / "file").write_bytes(content)
    assert is_torn(tmp_path / "file") is torn
    assert is_torn(tmp_path / "absent")


def test_what_is_complete_gets_to_the_next_worker_and_nothing_else_does(cache: Path) -> None:
    mine = paths.make_scratch()
    put(
        mine,
        inductor__ab__whole_so=LIBRARY,
        inductor__ab__torn_so=LIBRARY[:-1],
        inductor__ab__empty=b"",
        inductor__locks__key=b"x",
        inductor__memoizer=b"{}",
        triton__key__cubin=b"x",
        headers__header=b"x",
    )
    put(mine / "triton" / "tmp.pid_1", half=b"x")
    assert publish("torch") == (2, 4), "two of the four are torn"
    shared = {"inductor/ab/whole_so", "triton/key/cubin", "headers/header"}
    assert names(cache / "compiled") == shared
    assert (cache / "compiled/inductor/ab/whole_so").samefile(mine / "inductor/ab/whole_so")
    assert publish("torch") == (2, 4), "once more changes nothing"

    next_one = paths.make_scratch()
    assert names(next_one) == set()
    assert own_cache._fill(next_one, cache / "compiled", "torch") == (2, 2)
    assert names(next_one) == shared


def test_a_torn_file_among_the_shared_ones_is_deleted(cache: Path) -> None:
    put(cache / "compiled", inductor__ab__torn=b"", inductor__ab__cut=LIBRARY[:-9], inductor__ab__whole=LIBRARY)
    folder = paths.make_scratch()
    assert own_cache._fill(folder, paths.private_folder("compiled"), "torch") == (1, 1)
    assert names(cache / "compiled") == names(folder) == {"inductor/ab/whole"}


def test_an_empty_cache_is_empty_but_for_headers_and_adds_nothing_else(cache: Path) -> None:
    put(cache / "compiled", inductor__ab__whole=LIBRARY, headers__old=b"x")
    folder = paths.make_scratch()
    assert own_cache._fill(folder, paths.private_folder("compiled"), "fresh") == (0, 0)
    assert names(folder) == {"headers/old"}
    put(folder, inductor__cd__code=b"x", headers__new=b"x")
    assert publish("fresh") == (0, 0)
    assert names(cache / "compiled") == {"inductor/ab/whole", "headers/old", "headers/new"}


def test_without_hard_links_files_are_copied_whole(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    put(paths.make_scratch(), inductor__ab__code=b"x")
    assert publish("torch") == (1, 1)
    assert names(cache / "compiled") == {"inductor/ab/code"}


def test_what_compiles_before_any_run_does_it_in_a_folder_of_its_own(cache: Path) -> None:
    put(paths.make_scratch(), inductor__ab__left=b"")
    own_cache.name_folder()
    folder = paths.scratch_folder(os.getpid())
    assert not folder.exists(), "left by another process with this id"
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(folder / "inductor")
    assert os.environ["TRITON_CACHE_DIR"] == "as before", "Triton renames what it has written"
