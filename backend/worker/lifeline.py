"""No worker outlives its parent: the kernel's parent-death signal, and the end of the command pipe.

The signal works even while native code holds the interpreter lock; the pipe's end (see `process`) works
on systems without prctl. The signal is tied to the thread that started this process, so the engine starts
workers from a thread that lives as long as it does.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent(parent_pid: int) -> None:
    """Ask the kernel for SIGKILL when the parent dies; leave at once if it already has."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(0)
