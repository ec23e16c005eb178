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
def torn_library():
    for folder, _, names in os.walk(os.path.dirname(os.environ["TORCHINDUCTOR_CACHE_DIR"])):
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(".so"):  # as a linker leaves it that is killed: under its final name, without its end
                os.truncate(path, os.path.getsize(path) // 2)
    os.killpg(os.getpid(), signal.SIGKILL)
def nvml_gone():
    import pynvml
    def gone(*args, **more):
        raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
    for name in dir(pynvml):
        if name.startswith("nvml") and callable(getattr(pynvml, name)):
            setattr(pynvml, name, gone)
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
    if torch.cuda.is_initialized():  # a real one, which the process does not get rid of
        torch.arange(2, device="cuda")[torch.tensor([7], device="cuda")]
        return
    def broken(*args, **more):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    torch.nn.Module.__call__ = torch.nn.functional.linear = broken
def hang():
    import ctypes
    ctypes.PyDLL(None).sleep(600)  # PyDLL keeps the interpreter lock
def watch():
    path = {folder!r} + "/" + str(os.getpid())
    while True:
        for act in (tear, gpu_error, hang, torn_library, nvml_gone):
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
    """A fault. `act` gets the worker's pid; `undo` ends what it left in this process.

    told      words one of which the failed run's message must have; none where the run must end well
    may_pass  the run may also end well, since the fault need not be met
    hangs     nothing happens any more, until the phase's deadline
    phases    where it can happen; everywhere if none is named
    again     the same run must end well after it
    """

    name: str
    act: Callable[[int], None]
    told: tuple[str, ...]
    may_pass: bool = False
    hangs: bool = False
    phases: tuple[str, ...] = ()
    again: bool = False
    undo: Callable[[], None] = lambda: None


def arm(folder: Path) -> None:
    """Give every worker that starts from now on the triggers, with `folder` for its files."""
    (folder / "sitecustomize.py").write_text(TRIGGERS.replace("{folder!r}", repr(str(folder))))
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    os.environ["TOKENDYNO_SOAK"] = str(folder)


def _trigger(name: str) -> Callable[[int], None]:
    def act(pid: int) -> None:
        Path(os.environ["TOKENDYNO_SOAK"], f"{pid}.{name}").touch()

    return act


def _signal(number: signal.Signals) -> Callable[[int], None]:
    return lambda pid: os.kill(pid, number)


def _limit_memory(pid: int) -> None:
    resource.prlimit(pid, resource.RLIMIT_AS, (1 << 20, 1 << 20))


def _lose_nvml(pid: int) -> None:
    """NVML answers the worker no more, nor this process, which asks it for the memory that is free."""
    _trigger("nvml_gone")(pid)
    import pynvml

    def gone(*args: object) -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)

    _LOST.append(pynvml.nvmlInit)
    pynvml.nvmlInit = gone


def _find_nvml() -> None:
    import pynvml

    pynvml.nvmlInit = _LOST.pop()


_LOST: list[Callable[..., object]] = []

SILENT = ("made no progress",)

INJECTIONS = (
    Injection("killed", _signal(signal.SIGKILL), ("SIGKILL",)),
    Injection("stopped", _signal(signal.SIGSTOP), SILENT, hangs=True),
    Injection("segfault", _signal(signal.SIGSEGV), ("SIGSEGV",)),
    Injection("memory limit", _limit_memory, ("emory", "exited", "SIG", "failed", *SILENT), may_pass=True),
    Injection("GPU error", _trigger("gpu_error"), ("CUDA error",), may_pass=True),
    Injection("hang with the lock held", _trigger("hang"), SILENT, may_pass=True, hangs=True),
    Injection("pipe torn", _trigger("tear"), ("SIGKILL",), may_pass=True),
    Injection("NVML gone", _lose_nvml, (), may_pass=True, undo=_find_nvml),
    Injection("library torn", _trigger("torn_library"), ("SIGKILL",), phases=("compile",), again=True),
)  # fmt: skip
