"""How much of a file is in the page cache."""

import os
import stat
from pathlib import Path

import pytest

from tokendyno.backend.worker.load.loader import cached_share


def test_what_was_just_written_is_in_the_page_cache_and_what_was_dropped_is_not(tmp_path: Path) -> None:
    path, empty = tmp_path / "weights.safetensors", tmp_path / "empty.safetensors"
    path.write_bytes(bytes(1 << 20))
    empty.touch()
    assert cached_share([path, empty]) == 1.0 and cached_share([empty]) is None
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    assert cached_share([path]) in (0.0, 1.0)  # a file system in memory drops nothing


def test_a_file_too_large_to_be_copied_in_memory_counts(tmp_path: Path) -> None:
    small, large = tmp_path / "small.safetensors", tmp_path / "large.safetensors"
    small.write_bytes(bytes(1 << 20))
    large.touch()
    os.truncate(large, 1 << 36)  # 64 GiB of which nothing was written or read
    share = cached_share([small, large])
    assert share is not None and share < 0.01


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of another user")
def test_of_a_file_of_another_user_that_may_only_be_read_nothing_is_known(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(bytes(1 << 20))
    path.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    file = f"/proc/self/fd/{os.open(path, os.O_RDONLY)}"  # the folders above it belong to root alone
    os.seteuid(65534)
    try:
        assert cached_share([Path(file)]) is None
    finally:
        os.seteuid(0)
    assert cached_share([path]) == 1.0
