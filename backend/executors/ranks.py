"""An executor that is a group of ranks: torch's elastic launcher, and under it a worker process for each device.

The launcher is the child process that the engine sees: its pipes are rank 0's. The ranks lead process groups of their
own, so that they are ended one by one; should the launcher die, the kernel ends them.
"""

import contextlib
import functools
import os
import signal
from collections.abc import Mapping, Sequence

import msgspec
import psutil

from tokendyno.backend.engine.executor import HOST, ExecutorKind, Inbox
from tokendyno.backend.executors.subprocess import WorkerProcess
from tokendyno.backend.paths import remove_scratch
from tokendyno.backend.worker.ranks.launch import Share

GONE_WAIT_S = 5.0


class RankGroup(WorkerProcess):
    """The processes of this machine that run one model together. A rank that dies ends all, and `Died` names it."""

    def __init__(self, inbox: Inbox, share: Share) -> None:
        self._share = share
        super().__init__(inbox)

    def _module(self) -> list[str]:
        return ["tokendyno.backend.worker.ranks.launch", str(os.getpid()), msgspec.json.encode(self._share).decode()]

    @property
    def pids(self) -> Sequence[int]:
        """The launcher's id, then those of the ranks that run now."""
        return (self.pid, *(rank.pid for rank in self._members()))

    @property
    def resident_bytes(self) -> Mapping[int, int]:
        """Resident host memory of all of them."""
        with contextlib.suppress(psutil.Error):
            processes = psutil.Process(self.pid), *self._members()
            return {HOST: sum(int(process.memory_info().rss) for process in processes)}
        return {}

    def end(self) -> None:
        """End the launcher and every rank; returns when all are gone, and their memory with them."""
        members = self._members()
        super().end()
        for rank in members:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(rank.pid, signal.SIGKILL)
        psutil.wait_procs(members, GONE_WAIT_S)
        for rank in members:
            remove_scratch(rank.pid)

    def _members(self) -> list[psutil.Process]:
        """The ranks: children of the launcher that lead a session, which its own guard does not."""
        with contextlib.suppress(psutil.Error):
            return [child for child in psutil.Process(self.pid).children() if _leads_a_group(child.pid)]
        return []

    def _cause(self, code: int) -> str:
        """The launcher's own last line, where it has written one."""
        sentences = [line for line in self._stderr_tail if line.startswith(("Rank ", "Ranks ", "The ranks "))]
        if sentences:
            return sentences[-1] + self._abort_reason(sentences[-1])
        return super()._cause(code).replace("The worker process", "The launcher of the ranks")


def _leads_a_group(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return os.getpgid(pid) == pid
    return False


@functools.cache
def of_ranks(ranks: int) -> ExecutorKind:
    """The kind with that many ranks: always the same value, since the pool compares kinds."""
    return ExecutorKind(
        lambda inbox: RankGroup(inbox, Share(ranks)),
        remark=f"{ranks} ranks run the model together; times and tokens are those of rank 0.",
    )
