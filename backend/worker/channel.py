"""What a worker is told and what it reports: a queue of commands, and a channel that takes events and times phases."""

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tokendyno.backend.messages import (
    Amount,
    Cancel,
    Command,
    Event,
    Generate,
    Load,
    PhaseName,
    Probe,
    Progress,
    Prove,
    Score,
    Shutdown,
    encode,
)


class Steps:
    """Progress within one phase."""

    def __init__(self, channel: "Channel", phase: PhaseName) -> None:
        self._channel, self._phase, self._begin_s = channel, phase, time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._begin_s

    def step(self, fraction: float | None, note: str = "", amount: Amount | None = None) -> None:
        """Report progress: 0..1, or None where it is unknown."""
        self._channel.send(Progress(self._phase, "step", self.seconds, fraction, note, amount))


class Channel:
    """Takes a worker's events, from any thread, in order, by `send`. `phase`: the latest phase, for errors."""

    def __init__(self, send: Callable[[Event], object]) -> None:
        self.send = send
        self.phase: PhaseName = "start"

    @contextmanager
    def phasing(self, phase: PhaseName, note: str = "") -> Iterator[Steps]:
        """Report the begin and the end of a phase; yields what reports its steps."""
        self.phase = phase
        steps = Steps(self, phase)
        self.send(Progress(phase, "begin", 0.0, None, note))
        yield steps
        self.send(Progress(phase, "end", steps.seconds, 1.0))


@contextmanager
def repeating(act: Callable[[], object], every_s: float, name: str) -> Iterator[None]:
    """Within it, a thread of that name calls `act` again and again, so many seconds apart."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(every_s):
            act()

    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


class PipeChannel(Channel):
    """Writes each event to a file descriptor as one JSON line. `broken` is called when nobody reads any more."""

    def __init__(self, fd: int, broken: Callable[[], object]) -> None:
        super().__init__(self._write)
        self._fd, self._broken = fd, broken
        self._lock = threading.Lock()

    def _write(self, event: Event) -> None:
        data = memoryview(encode(event) + b"\n")
        with self._lock:
            try:
                while data:
                    data = data[os.write(self._fd, data) :]
            except OSError:
                self._broken()


Work = Load | Generate | Prove | Probe | Score
"""Commands that are carried out in turn."""


class Commands:
    """Filled by one thread, iterated by another, which carries the commands out. Ends at Shutdown or `close`.

    cancelled   set while the Generate or Score that was taken last is cancelled. A Cancel applies to every one put
                before it and to none after it, whenever they are taken
    """

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self._queue: queue.SimpleQueue[tuple[int, Work] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._newest = self._cancelled_up_to = 0  # numbers of the newest Generate or Score, and of the newest cancelled

    def put(self, command: Command) -> None:
        """Add a command. Only a Cancel takes effect before the commands ahead of it are done."""
        match command:
            case Cancel():
                with self._lock:
                    self._cancelled_up_to = self._newest
                    self.cancelled.set()
            case Shutdown():
                self.close()
            case Load() | Generate() | Prove() | Probe() | Score():
                self._newest += isinstance(command, Generate | Score)
                self._queue.put((self._newest, command))

    def close(self) -> None:
        """No more commands: iteration ends after those that were put."""
        self._queue.put(None)

    def abandon(self) -> None:
        """Cancel what is running and drop everything behind it: iteration ends with the current command."""
        self.put(Cancel())
        with contextlib.suppress(queue.Empty):
            while True:
                self._queue.get_nowait()
        self.close()

    def __iter__(self) -> Iterator[Work]:
        while (entry := self._queue.get()) is not None:
            number, command = entry
            if isinstance(command, Generate | Score):
                with self._lock:
                    (self.cancelled.set if number <= self._cancelled_up_to else self.cancelled.clear)()
            yield command
