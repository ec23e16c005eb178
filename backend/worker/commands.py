"""The commands of a worker, in order; a Cancel takes effect while an earlier command is still running."""

import contextlib
import queue
import threading
from collections.abc import Iterator

from tokendyno.backend.messages import Cancel, Command, Generate, Load, Probe, Prove, Score, Shutdown

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
        self._put = self._cancelled_up_to = 0  # numbers of the newest one, and of the newest cancelled

    def put(self, command: Command) -> None:
        """Add a command. Only a Cancel takes effect before the commands ahead of it are done."""
        match command:
            case Cancel():
                with self._lock:
                    self._cancelled_up_to = self._put
                    self.cancelled.set()
            case Shutdown():
                self.close()
            case Load() | Generate() | Prove() | Probe() | Score():
                self._put += isinstance(command, Generate | Score)
                self._queue.put((self._put, command))

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
        while (taken := self._queue.get()) is not None:
            number, command = taken
            if isinstance(command, Generate | Score):
                with self._lock:
                    (self.cancelled.set if number <= self._cancelled_up_to else self.cancelled.clear)()
            yield command
