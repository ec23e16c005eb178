"""Worker processes as the engine sees them: start, talk, watch, end.

A plain subprocess in its own process group, watched two ways: the end of its pipe and its exit status.
Neither can hang: a reader thread waits for lines, a waiter thread for the exit, and both put what they
learn into the engine's inbox.
"""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil

from backend.messages import Command, Event, decode_event, encode
from backend.redact import redact
from backend.scratch import remove_scratch

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Died:
    """A worker process is gone. `cause`: in words."""

    cause: str


@dataclass(frozen=True, slots=True)
class Wake:
    """Somebody wants the engine to look up (a cancel, a new job, the end)."""


@dataclass(frozen=True, slots=True)
class Letter:
    """Something for the engine; `worker` is None for Wake."""

    worker: "WorkerProcess | None"
    body: Event | Died | Wake


Inbox = queue.SimpleQueue[Letter]


def environment() -> dict[str, str]:
    """What a worker's process gets beside the user's own variables.

    OMP_WAIT_POLICY: on a CPU, OpenMP threads that spin while they wait lose whole time slices to any other
    busy process, such as the browser that watches (see MEASUREMENTS.md).
    """
    more = {
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "PYTHONUNBUFFERED": "1",
        "OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "PASSIVE"),
        "TOKENIZERS_PARALLELISM": os.environ.get("TOKENIZERS_PARALLELISM", "false"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    return {**os.environ, **more}


class WorkerProcess:
    """One worker. Must be started from a thread that lives as long as the engine: on Linux the kernel ties
    the parent-death signal to that thread."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self.begin_s = time.monotonic()
        self.start_s: float | None = None
        self.load_key = ""
        self.held_bytes = 0
        self._process = subprocess.Popen(
            [sys.executable, "-m", "backend.worker", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            start_new_session=True,
        )
        self.pid = self._process.pid
        self._said: deque[str] = deque(maxlen=40)
        self._ending = False
        self._reader = threading.Thread(target=self._read, name=f"worker-{self.pid}-out", daemon=True)
        self._listener = threading.Thread(target=self._listen, name=f"worker-{self.pid}-err", daemon=True)
        self._waiter = threading.Thread(target=self._wait, name=f"worker-{self.pid}-wait", daemon=True)
        for thread in (self._reader, self._listener, self._waiter):
            thread.start()

    @property
    def ready(self) -> bool:
        """Whether its imports are done and it takes commands; `start_s` says how long that took."""
        return self.start_s is not None

    def now_ready(self) -> None:
        """Note that its `Ready` has come."""
        self.start_s = time.monotonic() - self.begin_s

    @property
    def alive(self) -> bool:
        """Whether the process is there and was not told to end."""
        return self._process.poll() is None and not self._ending

    @property
    def memory_bytes(self) -> int:
        """Resident bytes now, 0 when it is gone."""
        with contextlib.suppress(psutil.Error):
            return int(psutil.Process(self.pid).memory_info().rss)
        return 0

    def send(self, command: Command) -> None:
        """Give a command. A worker that is gone is reported by `Died`, not here."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(encode(command) + b"\n")
            self._process.stdin.flush()

    def end(self, grace_s: float = 0.0) -> None:
        """End the whole process group: TERM and `grace_s` if asked for, then KILL. Returns when it is gone.

        What the worker reports from now on reaches nobody.
        """
        self._ending = True
        if grace_s:
            self._signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(grace_s)
        self._signal(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        remove_scratch(self.pid)
        self._hang_up()

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                try:
                    event = decode_event(line)
                except msgspec.MsgspecError:
                    self._said.append(f"unreadable line from the worker: {line[:200]!r}")
                    continue
                if not self._ending:
                    self._inbox.put(Letter(self, event))

    def _listen(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                text = redact(line.decode("utf-8", "replace").rstrip())
                if text:
                    self._said.append(text)

    def _wait(self) -> None:
        code = self._process.wait()
        self._reader.join(0.3)  # what it still said comes before its death; a grandchild may hold the pipe open
        self._listener.join(0.1)
        self._signal(signal.SIGKILL)  # no grandchild outlives it
        remove_scratch(self.pid)
        self._hang_up()
        if not self._ending:
            self._inbox.put(Letter(self, Died(self._cause(code))))

    def _cause(self, code: int) -> str:
        if code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            hint = " (often: the system ran out of memory)" if name == "SIGKILL" else ""
            return f"The worker process was killed by {name}{hint}."
        last = next((text for text in reversed(self._said) if not text.startswith(" ")), "")
        return f"The worker process ended with code {code}." + (f" Its last words: {last[:300]}" if last else "")
