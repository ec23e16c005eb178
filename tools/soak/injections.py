"""What is done to a worker in the middle of a phase, and what may come of it."""

import os
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from backend.paths import ROOT

TRIGGERS = """
import os, signal, sys, threading, time
def tear():
    for name in os.listdir("/proc/self/fd"):
        try:
            if int(name) > 2 and os.readlink("/proc/self/fd/" + name).startswith("pipe:"):
                os.write(int(name), b'{"event": "tokens", "first": 1, "t_s": [0.1')
        except OSError:
            pass
    os.kill(os.getpid(), signal.SIGKILL)
def gpu_error():
    import torch
    def broken(*args, **more):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    torch.nn.Module.__call__ = torch.nn.functional.linear = broken
def hang():
    import ctypes
    ctypes.PyDLL(None).sleep(600)  # PyDLL keeps the interpreter lock
def watch():
    path = {folder!r} + "/" + str(os.getpid())
    while True:
        for act in (tear, gpu_error, hang):
            if os.path.exists(path + "." + act.__name__):
                act()
                return
        time.sleep(0.005)
if "backend.worker" in sys.orig_argv:
    threading.Thread(target=watch, daemon=True).start()
"""
"""Runs first in every worker: does from inside what cannot be done from outside, when a file says so."""


@dataclass(frozen=True, slots=True)
class Injection:
    """A fault. `act` gets the worker's pid; `told`: words one of which the failed run's message must have; `may_pass`:
    the run may also end well, since the fault need not be met."""

    name: str
    act: Callable[[int], None]
    told: tuple[str, ...]
    may_pass: bool = False
    hangs: bool = False


def arm(folder: Path) -> None:
    """Give every worker that starts from now on the triggers, with `folder` for its files."""
    (folder / "sitecustomize.py").write_text(TRIGGERS.replace("{folder!r}", repr(str(folder))))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), str(ROOT)])
    os.environ["TOKENDYNO_SOAK"] = str(folder)


def _trigger(name: str) -> Callable[[int], None]:
    def act(pid: int) -> None:
        Path(os.environ["TOKENDYNO_SOAK"], f"{pid}.{name}").touch()

    return act


def _signal(number: signal.Signals) -> Callable[[int], None]:
    return lambda pid: os.kill(pid, number)


def _limit_memory(pid: int) -> None:
    resource.prlimit(pid, resource.RLIMIT_AS, (1 << 20, 1 << 20))


SILENT = ("made no progress",)

INJECTIONS = (
    Injection("killed", _signal(signal.SIGKILL), ("SIGKILL",)),
    Injection("stopped", _signal(signal.SIGSTOP), SILENT, hangs=True),
    Injection("segfault", _signal(signal.SIGSEGV), ("SIGSEGV",)),
    Injection("memory limit", _limit_memory, ("emory", "exited", "SIG", "failed"), may_pass=True),
    Injection("GPU error", _trigger("gpu_error"), ("CUDA error",), may_pass=True),
    Injection("hang with the lock held", _trigger("hang"), SILENT, may_pass=True, hangs=True),
    Injection("pipe torn", _trigger("tear"), ("SIGKILL",), may_pass=True),
)  # fmt: skip
