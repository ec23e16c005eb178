"""Processes seen from outside: waiting for one with a limit, whether it is gone, code that it runs first."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from tokendyno.backend.engine.bench import Bench


def wait_for(claim: Callable[[], object], limit_s: float = 30, what: str = "it") -> float:
    """Wait until `claim` is true; returns the seconds that took."""
    begin_s = time.monotonic()
    while not claim():
        assert time.monotonic() - begin_s < limit_s, f"waited {limit_s} s for {what}"
        time.sleep(0.002)
    return time.monotonic() - begin_s


def gone(pid: int) -> bool:
    """Whether a process has ended; a zombie that nobody has collected yet counts as ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"


def group(pgid: int) -> list[int]:
    """Living members of a process group."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if fields[0] not in "ZX" and int(fields[2]) == pgid:
                found.append(int(entry.name))
    return found


def sitecustomize(folder: Path, code: str) -> None:
    """Make every Python process started with PYTHONPATH=folder run `code` first."""
    (folder / "sitecustomize.py").write_text(code)


def with_path(folder: Path) -> str:
    """PYTHONPATH with a folder in front."""
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])


def pid_of(bench: Bench, slot: str) -> int:
    """The process of the worker in a bench's slot, once it has one."""
    executor = bench.pool.slots[slot].executor
    wait_for(lambda: executor.pids, what="the worker's process")
    return executor.pids[0]
