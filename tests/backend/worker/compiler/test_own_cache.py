"""A worker's own compile cache: only what is complete gets to other workers, whenever one of them is killed."""

import os
from pathlib import Path

import pytest

from tokendyno.backend import paths
from tokendyno.backend.worker.compiler import own_cache
from tokendyno.backend.worker.compiler.own_cache import publish


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


def test_what_is_complete_gets_to_the_next_worker_and_nothing_else_does(cache: Path) -> None:
    mine = paths.make_scratch()
    put(
        mine,
        inductor__ab__whole_so=b"x",
        inductor__locks__key=b"x",
        inductor__memoizer=b"{}",
        triton__key__cubin=b"x",
        headers__header=b"x",
    )
    put(mine / "triton" / "tmp.pid_1", half=b"x")
    assert publish("torch") == 2
    shared = {"inductor/ab/whole_so", "triton/key/cubin", "headers/header"}
    assert names(cache / "compiled") == shared
    assert (cache / "compiled/inductor/ab/whole_so").samefile(mine / "inductor/ab/whole_so")
    assert publish("torch") == 2, "once more changes nothing"

    next_one = paths.make_scratch()
    assert names(next_one) == set()
    assert own_cache._fill(next_one, cache / "compiled", "torch") == 2
    assert names(next_one) == shared


def test_an_empty_cache_is_empty_but_for_headers_and_adds_nothing_else(cache: Path) -> None:
    put(cache / "compiled", inductor__ab__whole=b"x", headers__old=b"x")
    folder = paths.make_scratch()
    assert own_cache._fill(folder, paths.private_folder("compiled"), "fresh") == 0
    assert names(folder) == {"headers/old"}
    put(folder, inductor__cd__code=b"x", headers__new=b"x")
    assert publish("fresh") == 0
    assert names(cache / "compiled") == {"inductor/ab/whole", "headers/old", "headers/new"}


def test_without_hard_links_files_are_copied_whole(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    put(paths.make_scratch(), inductor__ab__code=b"x")
    assert publish("torch") == 1
    assert names(cache / "compiled") == {"inductor/ab/code"}


def test_what_compiles_before_any_run_does_it_in_a_folder_of_its_own(cache: Path) -> None:
    put(paths.make_scratch(), inductor__ab__left=b"")
    own_cache.name_folder()
    folder = paths.scratch_folder(os.getpid())
    assert not folder.exists(), "left by another process with this id"
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(folder / "inductor")
    assert os.environ["TRITON_CACHE_DIR"] == "as before", "Triton renames what it has written"
