"""No worker process outlives its parent, and none of its children outlives the worker.

The parent's death is noticed by the kernel's parent-death signal, and by the end of the command pipe, which a worker
reads and its guard watches: the guard works while native code holds the worker's GIL, and for a worker that was forked
by another process than the one that it works for. The signal is tied to the thread that started this process, so the
engine starts workers from a thread that lives as long as it does.
"""

import ctypes
import os
import select
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent(parent_pid: int) -> None:
    """Ask the kernel for SIGKILL when the parent dies; exit at once if it already has."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(0)


def keep_events_apart() -> int:
    """Descriptor of the pipe for events, which standard output was; what prints now goes to standard error."""
    events_fd = os.dup(1)
    os.set_inheritable(events_fd, False)
    os.dup2(2, 1)
    return events_fd


def guard_group(commands: int | None = None) -> None:
    """Fork a tiny process that kills this one's whole process group once this one is gone, for whatever reason, or
    once nobody can write to `commands`, a pipe of which this process reads.

    Otherwise a compiler or compile worker started here would go on as an orphan after a SIGKILL. Called before any
    thread and any large import, so the fork is safe and cheap. Does nothing unless this process leads its group.
    """
    if not hasattr(os, "fork") or os.getpgrp() != os.getpid():
        return
    watched, held = os.pipe()  # not inherited by programs started later: it closes with this process alone
    if os.fork():
        os.close(watched)
        return
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.close(held)
    for fd in {0, 1, 2} - {commands}:
        os.close(fd)
    ends = select.poll()
    ends.register(watched, 0)  # no event but that the other end was closed
    if commands is not None:
        ends.register(commands, 0)
    ends.poll()
    os.killpg(0, signal.SIGKILL)
