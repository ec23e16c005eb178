"""How the engine sees whatever carries out its commands: a protocol, its kinds, and the letters that come back."""

import queue
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tokendyno.backend.messages import Command, Event
from tokendyno.backend.plan import Plan

HOST = -1
"""Key of host memory in a mapping of bytes by device; the key of a GPU is its index."""


def memory_key(device: str) -> int:
    """The key of the memory that a plan's or machine's `device` ("cpu" or "cuda") uses."""
    return HOST if device == "cpu" else 0


class Executor(Protocol):
    """Carries out commands and answers with events, as letters in the inbox that it was started with.

    It sends `Ready` once it accepts commands, and `Died` at most once: when it ends without having been told to.

    load_key        key of the plan that is loaded, "" while none is; the engine sets it after `Loaded`
    pids            its own processes, for whoever watches them; empty where it has none
    resident_bytes  memory that its own processes occupy now, by device; devices that it cannot measure are absent
    note            what a user should know of how it was started, "" if nothing
    """

    load_key: str

    @property
    def note(self) -> str: ...
    @property
    def alive(self) -> bool: ...
    @property
    def pids(self) -> Sequence[int]: ...
    @property
    def resident_bytes(self) -> Mapping[int, int]: ...

    def send(self, command: Command) -> None:
        """Give it a command. Never raises for an executor that is gone: `Died` reports that."""

    def end(self) -> None:
        """End it and free its memory. No letter is sent from now on."""


@dataclass(frozen=True, slots=True)
class Died:
    """An executor ended by itself. `cause`: one sentence."""

    cause: str


@dataclass(frozen=True, slots=True)
class Wake:
    """Wakes the engine thread: a run was queued or cancelled, or the app is closing."""


@dataclass(frozen=True, slots=True)
class Letter:
    """Something for the engine thread; `executor` is None for Wake."""

    executor: Executor | None
    body: Event | Died | Wake


Inbox = queue.SimpleQueue[Letter]


class StartError(Exception):
    """No executor can be started now; the message is one sentence that says why."""


@dataclass(frozen=True, slots=True)
class ExecutorKind:
    """One way to carry out a plan.

    start     starts an executor that answers into the inbox; StartError where none can be started
    isolated  each executor has memory of its own, which ending it frees, and can be killed at any time. Otherwise at
              most one exists: arms take turns, each loading its model again, and none is started ahead of a run
    remark    what a user should know about it, in one sentence; shown with every run
    start_s   how long it may take to start, where that is longer than a worker takes: other machines have to come
    """

    start: Callable[[Inbox], Executor]
    isolated: bool = True
    remark: str = ""
    start_s: float = 0.0


ChooseExecutor = Callable[[Plan | None], ExecutorKind]
"""The kind that carries out a plan; for None the kind that is started ahead of runs."""
