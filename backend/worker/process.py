"""How a worker's process is set up: tied to its parent, with a settled heap, and without imports that it never needs.

No worker process outlives the app, and none of its children outlives the worker. The app's death is noticed by the end
of the command pipe, which a worker reads and its guard watches: the guard works while native code holds the worker's
GIL. Ranks and trials have the kernel's parent-death signal, which is tied to the thread that started the process.
"""

import contextlib
import ctypes
import functools
import gc
import importlib
import importlib.metadata
import os
import pkgutil
import platform
import select
import signal
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

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
    read_end, write_end = os.pipe()  # not inherited by programs started later: it closes with this process alone
    if os.fork():
        os.close(read_end)
        return
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.close(write_end)
    for fd in {0, 1, 2} - {commands}:
        os.close(fd)
    ends = select.poll()
    ends.register(read_end, 0)  # no event but that the other end was closed
    if commands is not None:
        ends.register(commands, 0)
    ends.poll()
    os.killpg(0, signal.SIGKILL)


def killed_by(code: int) -> str:
    """How a process with this negative exit code ended, as the end of a sentence."""
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    hint = " (often because the system ran out of memory)" if name == "SIGKILL" else ""
    return f"was killed by {name}{hint}"


# --- the heap ------------------------------------------------------------------------------------

LARGEST_BYTES = 32 << 20
"""glibc takes blocks of up to this size from its heap at most (malloc/malloc.c, `DEFAULT_MMAP_THRESHOLD_MAX`)."""

_M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD = -3, -1  # malloc.h


def settle_heap() -> None:
    """Have glibc keep freed blocks of up to 32 MiB for reuse, as after the first such block that a program frees: else
    the keys and values of a first run's growing cache are new memory at each step (lab/measurements.md)."""
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, LARGEST_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, 2 * LARGEST_BYTES)  # malloc/malloc.c, `__libc_free`


# --- imports -------------------------------------------------------------------------------------

# transformers imports hqq (for one kind of KV cache), torchao (to save one kind of weights) and scipy (for losses)
# wherever they are installed. Without the first two a worker's imports take 3.9 s of CPU time instead of 5.1, and 342
# MiB instead of 390 (two cores, torch 2.13, transformers 5.22).

_LAZY = (  # the transformers module that imports a name, that name, and where it is defined
    ("transformers.cache_utils", "HQQQuantizer", "hqq.core.quantize:Quantizer"),
    (
        "transformers.quantizers.quantizer_torchao",
        "flatten_tensor_state_dict",
        "torchao.prototype.safetensors.safetensors_support:flatten_tensor_state_dict",
    ),
)

_UNUSED = "scipy"  # of losses, which nothing here computes


@contextlib.contextmanager
def frozen_imports() -> Iterator[None]:
    """Context for imports that stay as long as the process: later collections leave them out, which saves 0.2 s each.
    Meanwhile young objects are collected, whose holes would slow a token by 2.6%; old ones are not, which saves 0.5 s
    (lab/measurements.md)."""
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, 1_000_000)  # so many collections of what is middle-aged before the next of all
    try:
        yield
        gc.collect(1)
    finally:
        gc.freeze()
        gc.set_threshold(young, middle, old)


class LazyName:
    """Stands for what is defined at `place`, a module:name, which is imported on first attribute access or call."""

    def __init__(self, place: str) -> None:
        self._place = place

    def __getattr__(self, name: str) -> Any:
        return getattr(pkgutil.resolve_name(self._place), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return pkgutil.resolve_name(self._place)(*args, **kwargs)


class _Distributions(dict[str, list[str]]):
    """Import name -> distributions, as transformers looks them up: most bear the name that is imported. The standard
    library's mapping reads the list of files of every installed package, 1.1 s on a host with 250 of them."""

    _known: dict[str, list[str]] | None = None

    def get(self, name: str, default: Any = None) -> Any:
        if not name.startswith("flash_attn"):  # two distributions give it: flash-attn and flash-attn-4
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                return [importlib.metadata.distribution(name).name]
        self._known = self._known or dict(importlib.metadata.packages_distributions())
        return self._known.get(name, default)


class _ReadOnce(MetaPathFinder):
    """Has transformers read its own files once to learn what its models define: 0.4 of 3.0 s on two cores. It asks for
    all of them twice, and its cache holds 128 of their 540 folders; and it goes through the lines before `__all__`."""

    NAME = "transformers.utils.import_utils"

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        found = PathFinder.find_spec(name, path) if name == self.NAME else None
        if found is not None and found.loader is not None:
            self._real = found.loader.exec_module
            found.loader.exec_module = self._run  # type: ignore[method-assign]
        return found

    def _run(self, module: Any) -> None:
        self._real(module)
        scan, names = module.create_import_structure_from_path.__wrapped__, module.fetch__all__
        module.create_import_structure_from_path = functools.cache(scan)
        module.fetch__all__ = lambda text: names(text[text.rfind("\n__all__") + 1 :])


@contextlib.contextmanager
def light_imports() -> Iterator[None]:
    """Context in which transformers imports its modules as if those packages were missing; afterwards it finds them."""
    from unittest import mock

    finder = _ReadOnce()
    sys.meta_path.insert(0, finder)
    try:
        with mock.patch.object(importlib.metadata, "packages_distributions", _Distributions):
            from transformers.utils import import_utils
    finally:
        sys.meta_path.remove(finder)

    is_available = import_utils._is_package_available
    hidden = {_UNUSED, *(place.partition(".")[0] for _, _, place in _LAZY)}
    cached = (import_utils.is_hqq_available, import_utils.is_torchao_available, import_utils.is_scipy_available)

    def visible(name: str, return_version: bool = False) -> Any:
        return (False, "N/A") if name in hidden else is_available(name, return_version)

    for answer in cached:
        answer.cache_clear()
    try:
        with mock.patch.object(import_utils, "_is_package_available", visible):
            yield
    finally:
        for answer in cached:
            answer.cache_clear()
    for importer, name, place in _LAZY:
        if is_available(place.partition(".")[0])[0]:
            setattr(importlib.import_module(importer), name, LazyName(place))
