"""How much of a file is in the page cache."""

import os
from pathlib import Path

from tokendyno.backend.worker.load.page_cache import cached_share


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
