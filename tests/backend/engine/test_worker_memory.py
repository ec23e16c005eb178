"""What processes and their children hold together: what a fork shares with its parent counts once."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tokendyno.backend.engine.worker_memory import MemoryWatch

MIB = 1 << 20
FORKS = "import os; held = b'x' * (200 << 20); os.fork(); print(flush=True); input()"
FILLS = "import os; child = not os.fork(); held = b'x' * (200 << 20) if child else b''; print(flush=True); input()"


@pytest.mark.parametrize(
    ("code", "limit_mib", "exceeds"),
    [(FORKS, 150, True), (FORKS, 300, False), (FILLS, 150, True), (FILLS, 300, False)],
    ids=["shared by a fork", "not twice", "of a child", "less, of a child"],
)
def test_memory_of_a_process_and_its_children(code: str, limit_mib: int, exceeds: bool) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        for _ in range(2):
            process.stdout.readline()
        watch = MemoryWatch(limit_mib * MIB)
        found = watch.exceeded(cast(Any, SimpleNamespace(pids=(process.pid,))))
        assert process.stdin is not None
        process.stdin.write(b"\n\n")
    assert found is exceeds
