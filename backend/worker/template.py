"""A process that has done a worker's imports, and forks workers: `python -m tokendyno.backend.worker.template FD`.

A worker's imports take seconds; a fork has them after some milliseconds. Nothing of a run may be in what is forked:
this process has a single thread, loads no model and never touches a GPU's driver, which no forked process could use
(https://docs.pytorch.org/docs/stable/notes/multiprocessing.html#cuda-in-multiprocessing).

FD is its end of a socket to the program that asks for workers; messages are JSON:

  to it     {"name": "value", ...}: a worker's environment, with three descriptors: standard input, output and error
  from it   {"born": PID}: a worker, in the order of the requests; {"ended": PID, "code": CODE}

It ends with the socket, or where nothing can be forked, with the reason on standard error. Its workers do not end with
it: each watches its own standard input (see `process`).
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
import sys
import threading
import traceback

from tokendyno.backend.worker.process import frozen_imports

MOST_BYTES = 1 << 17
"""Of a message: environments are smaller (`getconf ARG_MAX` counts in MiB, and is never met)."""

MADV_POPULATE_READ = 22  # man 2 madvise
CUDA_ERROR_NOT_INITIALIZED = 3


def main() -> None:
    link = socket.socket(fileno=int(sys.argv[1]))
    # Whether there is a GPU is asked without its driver, and numpy starts no threads: no worker computes with it.
    os.environ |= {"PYTORCH_NVML_BASED_CUDA_CHECK": "1", "OPENBLAS_NUM_THREADS": "1"}
    with frozen_imports():
        import tokendyno.backend.worker.serve  # noqa: F401

    from transformers.conversion_mapping import get_checkpoint_conversion_mapping

    get_checkpoint_conversion_mapping("")  # patterns for every model there is, which each worker would compile anew
    if reason := _why_not():
        sys.exit(reason)  # said on standard error: a message would be lost where requests lie unread in the socket
    _serve(link)


def _why_not() -> str:
    """Why no worker can be forked from here, as a clause; "" if one can."""
    if len(os.listdir("/proc/self/task")) > 1 or threading.active_count() > 1:
        return "an imported package started a thread"
    with open("/proc/self/maps") as maps:
        if "libcuda.so" not in maps.read():
            return ""
    answer = ctypes.CDLL("libcuda.so.1").cuDeviceGetCount(ctypes.byref(ctypes.c_int()))
    return "" if answer == CUDA_ERROR_NOT_INITIALIZED else "an imported package initialized the GPU's driver"


def _serve(link: socket.socket) -> None:
    """Fork when asked, tell of every end, and end with the link."""
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
                _become_worker(json.loads(message), fds, begins, mapped)
            os.close(begins)
            os.read(begun, 1)  # it leads its group: whoever knows its number can kill that
            for fd in (begun, *fds):
                os.close(fd)
            link.send(json.dumps({"born": pid}).encode())


def _tell_ends(link: socket.socket) -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            with contextlib.suppress(OSError):
                link.send(json.dumps({"ended": pid, "code": os.waitstatus_to_exitcode(status)}).encode())


def _become_worker(env: dict[str, str], fds: list[int], begins: int, mapped: list[tuple[int, int]]) -> None:
    """Go on as a worker; never returns."""
    from tokendyno.backend.worker.__main__ import work

    os.setsid()
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(env)
    os.close(begins)
    libc = ctypes.CDLL(None, use_errno=True)
    for address, length in mapped:  # which a fork leaves to the first use: it would count as memory of a run
        libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(length), MADV_POPULATE_READ)
    try:
        work(forked=True)
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def _mapped() -> list[tuple[int, int]]:
    """Where files are mapped into this process's memory and present there: (address, bytes)."""
    page, ranges = mmap.PAGESIZE, list[tuple[int, int]]()
    with open("/proc/self/maps") as maps, open("/proc/self/pagemap", "rb", buffering=0) as pages:
        for line in maps:
            bounds, permissions, _, _, inode, *_ = line.split()
            if inode == "0" or not permissions.startswith("r"):
                continue
            begin, end = (int(bound, 16) for bound in bounds.split("-"))
            pages.seek(begin // page * 8)
            for index, (entry,) in enumerate(struct.iter_unpack("=Q", pages.read((end - begin) // page * 8))):
                address = begin + index * page
                if entry >> 63 and ranges and sum(ranges[-1]) == address:
                    ranges[-1] = (ranges[-1][0], ranges[-1][1] + page)
                elif entry >> 63:
                    ranges.append((address, page))
    return ranges


if __name__ == "__main__":
    main()
