"""Memory of the host, which some GPUs share."""

import contextlib

import psutil


def host_memory() -> tuple[int, int]:
    """(total, available) bytes of host memory, within the control group's limit (containers, Spaces)."""
    info = psutil.virtual_memory()
    total, free = int(info.total), int(info.available)
    with (
        contextlib.suppress(OSError, ValueError),
        open("/sys/fs/cgroup/memory.max") as limit,
        open("/sys/fs/cgroup/memory.current") as used,
    ):
        cap = limit.read().strip()
        if cap != "max":
            total = min(total, int(cap))
            free = min(free, max(0, int(cap) - int(used.read()) + _reclaimable_bytes()))
    return total, free


def _reclaimable_bytes() -> int:
    """File cache that the control group counts as used although the kernel frees it on demand."""
    with open("/sys/fs/cgroup/memory.stat") as stat:
        return next((int(line.split()[1]) for line in stat if line.startswith("inactive_file ")), 0)
