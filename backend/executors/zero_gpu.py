"""An executor on ZeroGPU: an arm's load and runs are one call of a generator under `@spaces.GPU`, which yields the
events of any run.

For a call the package `spaces` forks this process, or takes a fork of an earlier call; the platform lends it a GPU for
the seconds that were asked for. Commands reach it through a named pipe, which such a fork can open as well. A GPU that
is asked for nothing is given back at once, since its seconds are counted.
"""

import contextlib
import errno
import functools
import logging
import os
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tokendyno.backend import hardware
from tokendyno.backend.engine.executor import Died, ExecutorKind, Inbox, Letter
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors.in_process import InProcessWorker
from tokendyno.backend.messages import (
    Command,
    Event,
    Failed,
    Finished,
    Generate,
    Load,
    Loaded,
    Probe,
    Probed,
    Prove,
    Proved,
    Ready,
    Score,
    Scored,
    decode_command,
    decode_event,
    encode,
)
from tokendyno.backend.redact import redact
from tokendyno.backend.worker.channel import Channel, Commands

IDLE_S = 1.0
"""A call that has been asked for nothing for so long ends."""

OPEN_S = 10.0
"""How long the fork may take to open the pipe after its first event."""

MOST_EVENTS = 64
"""That go through the platform's queue at a time."""

CALL_S = (15.0, 120.0)
"""Seconds that are asked for, at least and at most. A visitor without an account has 120 a day."""

log = logging.getLogger("tokendyno")

Call = Callable[[str, float], Iterator[list[bytes]]]


@functools.cache
def call_on_gpu() -> Call:
    """`carry_out` under `@spaces.GPU`, made before the page is launched. InputError where the package is missing."""
    try:
        import spaces
    except ImportError as error:
        raise InputError(
            "This Space runs on ZeroGPU, which needs the package spaces. Write its requirements with: python -m "
            "tools.space zerogpu."
        ) from error
    decorated: Call = spaces.GPU(duration=call_s)(carry_out)
    return decorated


def call_s(pipe: str, expected_s: float) -> float:
    """The seconds that a call asks for, from what was predicted."""
    return min(max(expected_s, CALL_S[0]), CALL_S[1])


def carry_out(pipe: str, expected_s: float) -> Iterator[list[bytes]]:
    """In the fork: carry out the commands of a pipe until it is closed; yields events as lines of JSON."""
    from tokendyno.backend.worker.serve import serve

    commands, events = Commands(), queue.SimpleQueue[bytes | None]()

    def listen() -> None:
        try:
            with open(pipe, "rb") as lines:
                for line in lines:
                    commands.put(decode_command(line))
        finally:
            commands.abandon()  # nobody listens any more

    def work() -> None:
        try:
            serve(commands, Channel(lambda event: events.put(encode(event))), shared_process=True)
        finally:
            events.put(None)

    threading.Thread(target=listen, name="commands", daemon=True).start()
    threading.Thread(target=work, name="worker", daemon=True).start()
    over = False
    while not over:
        batch = [events.get()]
        while len(batch) < MOST_EVENTS and not events.empty():
            batch.append(events.get())
        over = None in batch  # it is the last
        yield [line for line in batch if line is not None]


class Line:
    """The commands of one call: they wait until the fork reads them. Closing it ends the call."""

    def __init__(self, first: Load) -> None:
        self.first = first
        self.closed = False
        self._waiting: list[Command] = [first]
        self._unanswered = 1
        self._pipe: int | None = None
        self._idle: threading.Timer | None = None
        self._lock = threading.Lock()

    @property
    def waits(self) -> bool:
        """Whether something was asked that no event has answered."""
        return self._unanswered > 0

    def send(self, command: Command) -> bool:
        """Hand a command over; False where the call has ended."""
        with self._lock:
            if self.closed:
                return False
            self._unanswered += isinstance(command, Generate | Prove | Probe | Score)
            self._waiting.append(command)
            self._write()
            return True

    def heard(self, event: Event) -> None:
        """Note an event; when nothing is unanswered for `IDLE_S`, the line closes."""
        with self._lock:
            self._unanswered -= isinstance(event, Loaded | Finished | Proved | Probed | Scored | Failed)
            if self._idle is not None:
                self._idle.cancel()
                self._idle = None
            if not self.waits:
                self._idle = threading.Timer(IDLE_S, self.close, (True,))
                self._idle.daemon = True
                self._idle.start()

    def open(self, pipe: Path) -> None:
        """Open the pipe once the fork reads it: a fork that inherited this end would never see it close."""
        deadline_s = time.monotonic() + OPEN_S
        while True:
            try:
                fd = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
                break
            except OSError as error:
                if error.errno != errno.ENXIO or time.monotonic() > deadline_s:
                    raise
                time.sleep(0.01)
        os.set_blocking(fd, True)
        with self._lock:
            self._pipe = fd
            self._write()
            if self.closed:
                self._hang_up()

    def close(self, only_idle: bool = False) -> None:
        """End the call; `only_idle`: unless something has been asked by now."""
        with self._lock:
            if not (only_idle and self.waits):
                self.closed = True
                self._hang_up()

    def _write(self) -> None:
        if self._pipe is None:
            return
        for command in self._waiting:
            with contextlib.suppress(OSError):  # a fork that is gone is reported by `Died`
                os.write(self._pipe, encode(command) + b"\n")
        self._waiting.clear()

    def _hang_up(self) -> None:
        if self._pipe is not None:
            with contextlib.suppress(OSError):
                os.close(self._pipe)
        self._pipe = None


class ZeroGpuWorker(InProcessWorker):
    """Each Load begins a call, for as many seconds as it says; the call before it ends. Like a thread's, its work
    cannot be interrupted and its memory is not limited, but the platform ends it after those seconds, which is a death.
    """

    def __init__(self, inbox: Inbox) -> None:
        self._lines: queue.SimpleQueue[Line | None] = queue.SimpleQueue()
        self._line: Line | None = None
        super().__init__(inbox)
        self._report(Ready(os.getpid(), 0.0, hardware.versions()))

    def send(self, command: Command) -> None:
        """Hand a command over; a Load asks for the GPU."""
        if isinstance(command, Load):
            self._close()
            self._line = Line(command)
            self._lines.put(self._line)
        elif self._line is None or not self._line.send(command):
            self._inbox.put(Letter(self, Died("The GPU had been given back.")))

    def end(self) -> None:
        """Cancel what is running and let the call end; a load that is under way keeps the GPU until it is done."""
        self._ending = True
        self._close()
        self._lines.put(None)
        super().end()

    def _close(self) -> None:
        if self._line is not None:
            self._line.close()

    def _serve(self) -> None:
        import tokendyno.backend.worker.serve  # noqa: F401  # what is imported before the fork costs none of the GPU's seconds

        while (line := self._lines.get()) is not None:
            self._call(line)

    def _call(self, line: Line) -> None:
        with tempfile.TemporaryDirectory(prefix="tokendyno-") as folder:
            pipe = Path(folder) / "commands"
            os.mkfifo(pipe, 0o600)
            try:
                for lines in call_on_gpu()(str(pipe), line.first.expected_s):
                    for event in map(decode_event, lines):
                        if isinstance(event, Ready):  # the first; to the engine it was said before the call
                            line.open(pipe)
                            continue
                        line.heard(event)
                        if line is self._line:
                            self._report(event)
                if line.waits and not line.closed:
                    raise RuntimeError("it ended without an answer")
            except Exception as error:
                if not line.closed:
                    raise EndedEarly(line, error) from error
                log.warning("a call on ZeroGPU failed after it had been ended: %s", redact(str(error)))
            finally:
                line.close()

    def _explain(self, error: BaseException) -> str:
        return redact(str(error)[:300]) if isinstance(error, EndedEarly) else super()._explain(error)


class EndedEarly(Exception):
    """The platform ended a call, or never began it."""

    def __init__(self, line: Line, error: Exception) -> None:
        requested_s = call_s("", line.first.expected_s)
        reason = str(getattr(error, "message", error)).rstrip(".")
        super().__init__(f"ZeroGPU ended the call, which had asked for {requested_s:.0f} s: {reason}.")


ZERO_GPU = ExecutorKind(
    ZeroGpuWorker,
    isolated=False,
    remark="On ZeroGPU each arm gets a GPU for a call of its own: memory is not separable from that of the app, and a "
    "load cannot be stopped.",
)
