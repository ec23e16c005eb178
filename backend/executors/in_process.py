"""An executor in this process: the worker's loop in a thread, with commands and events handed over as objects.

For places where no second process can be started or given the GPU. It is honest about what a thread cannot do: memory
is that of the whole process, which no mode limits, and a step that is running (a load, a compilation, a token, a text
that a tokenizer splits) cannot be interrupted; only a chat template that loops in Python code is.
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tokendyno.backend.engine.executor import Died, ExecutorKind, Inbox, Letter, StartError
from tokendyno.backend.messages import Command, Event
from tokendyno.backend.redact import redact
from tokendyno.backend.worker.channel import Channel, Commands

log = logging.getLogger("tokendyno")

END_WAIT_S = 5.0
"""How long `end` waits for the step that is running."""

_TURN = threading.Lock()
"""Held while one works: torch, its compiler and its allocator have one state per process."""


class InProcessWorker:
    """One worker thread. StartError while an earlier one is still busy, since it cannot be killed.

    torch and transformers are imported by the thread, when it starts. It has no process of its own, and its part of
    this process's memory cannot be told apart.
    """

    note = ""
    pids: Sequence[int] = ()
    resident_bytes: Mapping[int, int] = MappingProxyType({})

    def __init__(self, inbox: Inbox) -> None:
        self.load_key = ""
        self._inbox = inbox
        self._commands = Commands()
        self._ending = False
        if not _TURN.acquire(timeout=END_WAIT_S):
            raise StartError(
                "The previous run is still working in this process and cannot be stopped. Wait until it is done, or "
                "restart the app."
            )
        self._thread = threading.Thread(target=self._work, name="in-process-worker", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it accepts commands: its thread runs and it was not told to end."""
        return self.busy and not self._ending

    @property
    def busy(self) -> bool:
        """Whether its thread still runs, possibly after `end`."""
        return self._thread.is_alive()

    def send(self, command: Command) -> None:
        """Hand a command over; a Cancel stops the running Generate after its current token."""
        self._commands.put(command)

    def end(self) -> None:
        """Cancel what runs and wait for the thread, which cannot be killed: after a while the log says so."""
        self._ending = True
        self._commands.abandon()
        self._thread.join(END_WAIT_S)
        if self.busy:
            log.warning("The in-process worker is still busy and cannot be killed; it ends after its current step.")

    def _work(self) -> None:
        cause = "The in-process worker ended."
        try:
            self._serve()
        except BaseException as error:  # a thread has nobody else to tell
            log.exception("the in-process worker failed")
            cause = self._explain(error)
        finally:
            _TURN.release()
            if not self._ending:
                self._inbox.put(Letter(self, Died(cause)))

    def _serve(self) -> None:
        """Carry out commands until they end; the body of the thread."""
        from tokendyno.backend.worker.serve import free_memory, serve

        try:
            serve(self._commands, Channel(self._report), shared_process=True)
        finally:
            free_memory()

    def _explain(self, error: BaseException) -> str:
        """A sentence about what ended the thread."""
        return redact(f"The in-process worker failed: {type(error).__name__}: {error}"[:300])

    def _report(self, event: Event) -> None:
        if not self._ending:
            self._inbox.put(Letter(self, event))


IN_PROCESS = ExecutorKind(
    InProcessWorker,
    isolated=False,
    remark="Arms run one after the other in the app's own process: memory is not separable by arm, and a load or a "
    "compilation cannot be stopped.",
)
