"""An executor that is a subprocess: `python -m tokendyno.backend.worker` in a process group of its own.

Three threads serve each process, so that the engine never blocks on it: one decodes events from its standard
output, one keeps the last lines of its standard error, one waits for its exit.
"""

import contextlib
import os
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import IO, Protocol

import psutil

from tokendyno.backend.child_python import import_variables, last_words, python_command
from tokendyno.backend.engine.executor import HOST, Died, Inbox, Letter, StartError
from tokendyno.backend.errors import UNDECODABLE, InputError
from tokendyno.backend.messages import Command, decode_event, encode
from tokendyno.backend.paths import private_folder, remove_scratch
from tokendyno.backend.redact import redact
from tokendyno.backend.worker.process import killed_by


def worker_variables() -> dict[str, str]:
    """What libraries read when a worker imports them; the user's own choices stay."""
    return {
        "OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "PASSIVE"),
        "TOKENIZERS_PARALLELISM": os.environ.get("TOKENIZERS_PARALLELISM", "false"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }


def environment() -> dict[str, str]:
    """The environment of a worker process. OMP_WAIT_POLICY: spinning threads would take time from the browser."""
    return {**os.environ, **import_variables(), "PYTHONUNBUFFERED": "1", **worker_variables()}


ABORTS = ("what(): ", "terminate called", "Fatal Python error", "Assertion ")
"""How C++, Python and C report that they abort; of an exception C++ gives its type first, and then what it says."""


class Process(Protocol):
    """What a worker needs of its process, as `subprocess.Popen` has it. `pid`: None while there is none yet."""

    @property
    def pid(self) -> int | None: ...
    @property
    def stdin(self) -> IO[bytes] | None: ...
    @property
    def stdout(self) -> IO[bytes] | None: ...
    @property
    def stderr(self) -> IO[bytes] | None: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...


class WorkerProcess:
    """One worker process. StartError where it cannot be started.

    Start it from a thread that lives as long as the engine: the process of a trial ends with the thread that started
    it. Its memory on a GPU is not known here.
    """

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self.load_key = ""
        try:
            private_folder("scratch")  # torch makes its folder there while it is imported, and says less
            self._process = self._start()
        except InputError as error:
            raise StartError(str(error)) from error
        except OSError as error:
            raise StartError(f"The worker process could not be started ({error.strerror or error}).") from error
        self._stderr_tail: deque[str] = deque(maxlen=120)  # Python 3.14 prints the C stack too
        self._ending = False
        self._reader = threading.Thread(target=self._read_events, name="worker-out", daemon=True)
        self._listener = threading.Thread(target=self._read_errors, name="worker-err", daemon=True)
        self._waiter = threading.Thread(target=self._wait, name="worker-wait", daemon=True)
        try:
            for thread in (self._reader, self._listener, self._waiter):
                thread.start()
        except RuntimeError as error:  # the system gives no more threads
            WorkerProcess.end(self)
            raise StartError(f"The worker process could not be watched ({error}).") from error

    def _start(self) -> Process:
        """The process, with pipes, as leader of a group of its own."""
        return subprocess.Popen(
            python_command(*self._module()),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            start_new_session=True,
        )

    def _module(self) -> list[str]:
        """The module that the process runs, and its arguments."""
        return ["tokendyno.backend.worker"]

    @property
    def alive(self) -> bool:
        """Whether the process runs and was not told to end."""
        return self._process.poll() is None and not self._ending

    @property
    def note(self) -> str:
        """What a user should know of how it was started."""
        return ""

    @property
    def pid(self) -> int:
        """The process's id, where there is a process by now."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def pids(self) -> Sequence[int]:
        """The process's id, which is also that of its group; empty while there is none."""
        return () if self._process.pid is None else (self._process.pid,)

    @property
    def resident_bytes(self) -> Mapping[int, int]:
        """Resident host memory now; empty once the process is gone."""
        with contextlib.suppress(psutil.Error):
            return {HOST: sum(int(psutil.Process(pid).memory_info().rss) for pid in self.pids)}
        return {}

    def send(self, command: Command) -> None:
        """Write a command. A process that is gone is reported by `Died`, not here."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(encode(command) + b"\n")
            self._process.stdin.flush()

    def end(self) -> None:
        """Kill the whole process group; later events are dropped."""
        self._ending = True
        self._signal(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self._remove_scratch()
        self._close_stdin()

    def _close_stdin(self) -> None:
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()

    def _signal(self, number: signal.Signals) -> None:
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, number)

    def _remove_scratch(self) -> None:
        for pid in self.pids:
            remove_scratch(pid)

    def _read_events(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                try:
                    event = decode_event(line)
                except UNDECODABLE:
                    self._stderr_tail.append(f"unreadable line from the worker: {line[:200]!r}")
                    continue
                if not self._ending:
                    self._inbox.put(Letter(self, event))

    def _read_errors(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                text = redact(line.decode("utf-8", "replace").rstrip())
                if text:
                    self._stderr_tail.append(text)

    def _wait(self) -> None:
        code = self._process.wait()
        self._reader.join(0.3)  # its last events come before Died; a grandchild may keep the pipe open
        self._listener.join(0.1)
        self._signal(signal.SIGKILL)  # leave no grandchild behind
        self._remove_scratch()
        self._close_stdin()
        if not self._ending:
            self._inbox.put(Letter(self, Died(self._cause(code))))

    def _abort_reason(self, ended: str) -> str:
        """What a process that `ended` with SIGABRT said on standard error before; "" for any other end."""
        if "SIGABRT" not in ended:
            return ""
        reason = next((text for text in reversed(self._stderr_tail) if any(mark in text for mark in ABORTS)), "")
        return f" It said: {reason.strip()[:300]}" if reason else ""

    def _cause(self, code: int) -> str:
        if code < 0:
            ended = killed_by(code)
            return f"The worker process {ended}.{self._abort_reason(ended)}"
        last = last_words(self._stderr_tail)
        return f"The worker process exited with code {code}." + (f" Last line on stderr: {last}" if last else "")
