"""Workers that are forked from a process which has done their imports, for tests of anything but how a worker starts.

A worker's imports take 4 s of CPU time, more than all else that most tests ask of it. A forked one is a process with a
group, pipes and a parent-death signal of its own, and runs `tokendyno.backend.worker` from its first line. One that is
to have another environment than its parent's is started as always, since libraries read variables while they are
imported.
"""

import contextlib
import ctypes
import json
import mmap
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import IO, cast

from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.engine.executor import ExecutorKind
from tokendyno.backend.executors import KINDS, open_bench
from tokendyno.backend.executors.subprocess import WorkerProcess, environment
from tokendyno.backend.paths import ROOT
from tokendyno.backend.worker.lazy_imports import kept_imports

READ_LATE = ("PYTEST_", "TOKENDYNO_")
"""How variables begin that are read when they are needed, not while something is imported."""

MOST_BYTES = 1 << 17
MADV_POPULATE_READ = 22  # man 2 madvise


class Nursery:
    """The process with the imports. Any thread may ask for a worker."""

    def __init__(self) -> None:
        self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._env, self._python = environment(), sys.executable
        command = [sys.executable, "-m", "tests.support.forked_workers", str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(command, cwd=ROOT, env=self._env, pass_fds=[theirs.fileno()])
        self._asking = threading.Lock()
        self._born: SimpleQueue[int] = SimpleQueue()
        self._codes: dict[int, int] = {}
        self._changed = threading.Condition()
        threading.Thread(target=self._listen, name="nursery", daemon=True).start()

    def serves(self, env: Mapping[str, str]) -> bool:
        """Whether a worker with these variables can be forked here."""
        return sys.executable == self._python and _read_early(env) == _read_early(self._env)

    def fork(self, env: Mapping[str, str]) -> "Forked":
        """A worker with these variables."""
        pipes = [os.pipe() for _ in range(3)]
        (their_in, our_in), (our_out, their_out), (our_err, their_err) = pipes
        theirs = [their_in, their_out, their_err]
        with self._asking:
            socket.send_fds(self._link, [json.dumps(dict(env)).encode()], theirs)
            pid = self._born.get(timeout=240)  # of a busy machine: the first waits for the imports
        for fd in theirs:
            os.close(fd)
        return Forked(self, pid, os.fdopen(our_in, "wb"), os.fdopen(our_out, "rb"), os.fdopen(our_err, "rb"))

    def code(self, pid: int, timeout_s: float | None = 0.0) -> int | None:
        """How a worker has ended, within `timeout_s`; None while it has not."""
        with self._changed:
            self._changed.wait_for(lambda: pid in self._codes, timeout_s)
            return self._codes.get(pid)

    def _listen(self) -> None:
        while message := self._link.recv(MOST_BYTES):
            pid, code = json.loads(message)
            if code is None:
                self._born.put(pid)
                continue
            with self._changed:
                self._codes[pid] = code
                self._changed.notify_all()

    def close(self) -> None:
        """End it, and what it has forked."""
        self._link.shutdown(socket.SHUT_RDWR)
        self._process.wait(10)
        self._link.close()


class Forked:
    """What `WorkerProcess` needs of a `subprocess.Popen`."""

    def __init__(self, nursery: Nursery, pid: int, stdin: IO[bytes], stdout: IO[bytes], stderr: IO[bytes]) -> None:
        self._nursery, self.pid = nursery, pid
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr

    def poll(self) -> int | None:
        return self._nursery.code(self.pid)

    def wait(self, timeout: float | None = None) -> int:
        code = self._nursery.code(self.pid, timeout)
        if code is None:
            raise subprocess.TimeoutExpired("tokendyno.backend.worker", timeout or 0.0)
        return code


class ForkedWorker(WorkerProcess):
    """A worker of `nursery`, or a new process where its variables ask for one."""

    nursery: Nursery

    def _start(self) -> "subprocess.Popen[bytes]":
        env = environment()
        if not self.nursery.serves(env):
            return super()._start()
        return cast("subprocess.Popen[bytes]", self.nursery.fork(env))


def forking(nursery: Nursery) -> ExecutorKind:
    """Workers of `nursery` as a kind of executor."""
    return ExecutorKind(type("OfNursery", (ForkedWorker,), {"nursery": nursery}))


def open_forking(nursery: Nursery, history: Path | None = None) -> Bench:
    """A bench as `open_bench` makes it, whose workers are forked. Groups of ranks are started as always."""
    kind, bench = forking(nursery), open_bench(history)
    choose = bench.pool.choose

    def forked(plan: object) -> ExecutorKind:
        found = choose(plan)  # type: ignore[arg-type]
        return kind if found is KINDS["subprocess"] else found

    bench.pool.choose = forked
    return bench


def _read_early(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if not name.startswith(READ_LATE)}


def _mapped() -> list[tuple[int, int]]:
    """Where files are mapped into this process's memory and present there: (address, bytes)."""
    page, found = mmap.PAGESIZE, list[tuple[int, int]]()
    with open("/proc/self/maps") as maps, open("/proc/self/pagemap", "rb", buffering=0) as pages:
        for line in maps:
            place, rights, _, _, inode, *_ = line.split()
            if inode == "0" or not rights.startswith("r"):
                continue
            begin, end = (int(one, 16) for one in place.split("-"))
            pages.seek(begin // page * 8)
            for index, (entry,) in enumerate(struct.iter_unpack("=Q", pages.read((end - begin) // page * 8))):
                at = begin + index * page
                if entry >> 63 and found and sum(found[-1]) == at:
                    found[-1] = (found[-1][0], found[-1][1] + page)
                elif entry >> 63:
                    found.append((at, page))
    return found


def _map_again(places: list[tuple[int, int]]) -> None:
    """Map what was mapped before the fork, which leaves that to the first use: it would count as what a run left."""
    libc = ctypes.CDLL(None, use_errno=True)
    for at, length in places:
        libc.madvise(ctypes.c_void_p(at), ctypes.c_size_t(length), MADV_POPULATE_READ)


def _serve(link: socket.socket) -> None:
    """Body of the process with the imports: fork when asked, tell of every end; end with the link."""
    with kept_imports():
        import tokendyno.backend.worker.serve  # noqa: F401

    mapped = _mapped()
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([link.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _tell_ends(link)
        if link.fileno() in ready:
            message, fds, _, _ = socket.recv_fds(link, MOST_BYTES, 3)
            if not message:
                return
            begun, begins = os.pipe()
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for fd in (woken, wakes, begun, link.detach()):
                    os.close(fd)
                _become(json.loads(message), fds, begins, mapped)
            os.close(begins)
            os.read(begun, 1)  # it leads its group: whoever knows its number can kill that
            for fd in (begun, *fds):
                os.close(fd)
            link.send(json.dumps([pid, None]).encode())


def _tell_ends(link: socket.socket) -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            with contextlib.suppress(OSError):
                link.send(json.dumps([pid, os.waitstatus_to_exitcode(status)]).encode())


def _become(env: dict[str, str], fds: list[int], begins: int, mapped: list[tuple[int, int]]) -> None:
    """Go on as a worker; never returns."""
    from tokendyno.backend.worker.__main__ import main

    os.setsid()
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(env)
    os.close(begins)
    _map_again(mapped)
    sys.argv = ["tokendyno.backend.worker", str(os.getppid())]
    try:
        main()
    except BaseException:
        traceback.print_exc()
    os._exit(1)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
