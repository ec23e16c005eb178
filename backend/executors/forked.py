"""Workers that are forked from a process which has done their imports: ready in milliseconds instead of seconds.

A worker is started the plain way, as a new process, where that process cannot be had: on other systems than Linux,
where it was killed, where an imported package started a thread or touched a GPU's driver, and for a worker that is to
have other variables than it has, since libraries read them while they are imported.
"""

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import IO

import psutil

from tokendyno.backend.child_python import last_words, python_command
from tokendyno.backend.executors.subprocess import Process, WorkerProcess, environment
from tokendyno.backend.worker.template import MOST_BYTES

READ_LATE = ("PYTEST_", "TOKENDYNO_")
"""How variables begin that are read when they are needed, not while something is imported."""

UNKNOWN = 255
"""Exit code of a worker whose end nobody saw: the process that it was forked from had ended before."""

LOOK_S = 0.1
"""How often a worker is looked at of whose end nobody tells."""


class Template:
    """The process with the imports. Any thread may ask for a worker; the first one starts it, unless it was begun.

    changed  held while anything here or of its workers changes, and notified of that
    trouble  why no worker can be forked (any more), as part of a sentence; "" while nothing is known to be wrong
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.trouble = "" if sys.platform == "linux" else "only Linux can fork it"
        self._process: subprocess.Popen[bytes] | None = None
        self._unborn: deque[Forked] = deque()
        self._codes: dict[int, int] = {}

    @property
    def pid(self) -> int | None:
        """Its process, None before the first worker was asked for."""
        return self._process.pid if self._process is not None else None

    def begin(self) -> None:
        """Start it ahead of the first worker."""
        with self.changed:
            if self._process is None and not self.trouble:
                self._start()

    def ask(self, worker: "Forked", env: Mapping[str, str], fds: Sequence[int]) -> bool:
        """Ask for a worker with these variables and streams. False where there will be none (`trouble`)."""
        self.begin()
        with self.changed:
            if self.trouble or (sys.executable, _read_early(env)) != (self._python, _read_early(self._env)):
                return False
            self._unborn.append(worker)
            with contextlib.suppress(OSError):  # it has just ended, and `_listen` says so
                socket.send_fds(self._link, [json.dumps(dict(env)).encode()], fds)
            return True

    def _start(self) -> None:
        self._env, self._python = environment(), sys.executable
        self._link, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._stderr = tempfile.TemporaryFile()  # noqa: SIM115, of whatever length: nobody reads it before the end
            with child_end:
                self._process = subprocess.Popen(
                    python_command("tokendyno.backend.worker.template", str(child_end.fileno())),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._stderr,
                    env=self._env,
                    pass_fds=[child_end.fileno()],
                    start_new_session=True,
                )
            atexit.register(self._process.kill)
            threading.Thread(target=self._listen, args=(self._process,), name="template", daemon=True).start()
        except (OSError, RuntimeError) as error:
            self.trouble = f"it could not be started ({error})"

    def code(self, pid: int) -> int | None:
        """How a worker has ended; None while it has not."""
        if pid in self._codes or not self.trouble:
            return self._codes.get(pid)
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                return None
        return UNKNOWN

    def _listen(self, process: "subprocess.Popen[bytes]") -> None:
        with contextlib.suppress(OSError):
            while message := self._link.recv(MOST_BYTES):
                with self.changed:
                    match json.loads(message):
                        case {"born": pid}:
                            self._unborn.popleft().pid = pid
                        case {"ended": pid, "code": code}:
                            self._codes[pid] = code
                    self.changed.notify_all()
        code = process.wait()
        with self._stderr:
            self._stderr.seek(0)
            last = last_words(self._stderr.read().decode("utf-8", "replace").splitlines())
        with self.changed:
            self._link.close()
            self.trouble = self.trouble or (f"it was killed by signal {-code}" if code < 0 else last or "it ended")
            self.changed.notify_all()


class Forked:
    """A worker that a template is asked for. `pid`: None until it is born.

    Where it cannot be forked after all, it becomes a new process, `note` says why, and `failure` if not even that could
    be started.
    """

    def __init__(self, template: Template) -> None:
        self.pid: int | None = None
        self.note = self.failure = ""
        (child_in, parent_in), (parent_out, child_out), (parent_err, child_err) = (os.pipe() for _ in range(3))
        self.stdin: IO[bytes] = os.fdopen(parent_in, "wb")
        self.stdout: IO[bytes] = os.fdopen(parent_out, "rb")
        self.stderr: IO[bytes] = os.fdopen(parent_err, "rb")
        self._child_ends = [child_in, child_out, child_err]
        self._template, self._abandoned = template, False
        self._popen: subprocess.Popen[bytes] | None = None
        self.requested = template.ask(self, environment(), self._child_ends)
        if not self.requested:
            self._close_child_ends()
            for stream in (self.stdin, self.stdout, self.stderr):
                stream.close()

    def abandon(self) -> bool:
        """Do without it, if it is not born yet: it ends as soon as it is, with its standard input."""
        with self._template.changed:
            self._abandoned = self.pid is None
            self._template.changed.notify_all()
            return self._abandoned

    def poll(self) -> int | None:
        with self._template.changed:
            return self._code()

    def wait(self, timeout: float | None = None) -> int:
        """As that of a Popen. Without a limit call it from one thread that lives as long as the worker."""
        until_s = time.monotonic() + timeout if timeout is not None else float("inf")
        template = self._template
        with template.changed:
            if timeout is None:
                template.changed.wait_for(lambda: self.pid is not None or self._abandoned or template.trouble)
                if self.pid is None and not self._abandoned:
                    self._start_unforked()
                self._close_child_ends()
            while (code := self._code()) is None:
                left_s = until_s - time.monotonic()
                if left_s <= 0:
                    raise subprocess.TimeoutExpired("tokendyno.backend.worker", timeout or 0.0)
                template.changed.wait(min(left_s, LOOK_S if template.trouble else threading.TIMEOUT_MAX))
        return code

    def _code(self) -> int | None:
        if self._popen is not None:
            return self._popen.poll()
        if self.pid is not None:
            return self._template.code(self.pid)
        return -signal.SIGKILL if self._abandoned or self.failure else None

    def _start_unforked(self) -> None:
        self.note = not_forked_since(self._template.trouble)
        stdin, stdout, stderr = self._child_ends
        try:
            self._popen = subprocess.Popen(
                python_command("tokendyno.backend.worker"),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=environment(),
                start_new_session=True,
            )
            self.pid = self._popen.pid
        except OSError as error:
            self.failure = f"The worker process could not be started ({error.strerror or error})."

    def _close_child_ends(self) -> None:
        while self._child_ends:
            os.close(self._child_ends.pop())


def not_forked_since(trouble: str) -> str:
    """What is said of a worker that was started as a new process."""
    return f"started as a new process: the one that has done the imports cannot be forked, since {trouble}"


TEMPLATE = Template()
"""That of this process."""


class ForkedWorker(WorkerProcess):
    """A worker of this process's template, or a new process where that cannot fork it."""

    def _start(self) -> Process:
        self._forked = Forked(TEMPLATE)
        if self._forked.requested:
            return self._forked
        if TEMPLATE.trouble and sys.platform == "linux":  # elsewhere every worker starts like this
            self._forked.note = not_forked_since(TEMPLATE.trouble)
        return super()._start()

    @property
    def note(self) -> str:
        """Why it was not forked; "" if it was."""
        return self._forked.note

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not self._forked or not self._forked.abandon():
            super()._signal(number)

    def _cause(self, code: int) -> str:
        if code == UNKNOWN:
            return "The worker process ended, and the one that it was forked from had ended before."
        return self._forked.failure or super()._cause(code)


def _read_early(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if not name.startswith(READ_LATE)}
