"""A file is written whole or not at all, and nothing else in its folder is touched."""

import errno
import os
import stat
from pathlib import Path

import pytest

from tokendyno.backend.files.whole import PRIVATE, require_writable, write_whole


def test_a_file_is_replaced_through_a_link_and_whatever_has_a_similar_name_stays(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real.part").write_text("somebody's download")
    require_writable(tmp_path / "link")
    write_whole(tmp_path / "link", b"new", PRIVATE)
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == PRIVATE
    assert (tmp_path / "real.part").read_text() == "somebody's download"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real", "real.part"]


def test_what_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(tmp_path / "file", b"new")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]
    with pytest.raises(OSError, match="No such file"):
        require_writable(tmp_path / "nowhere" / "file")
