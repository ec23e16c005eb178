"""A throw-away executor: no process and no model, it answers every command with a fixed script of events."""

import threading
import time
from collections.abc import Mapping
from typing import Literal

from tokendyno.backend.engine.executor import HOST, Died, ExecutorKind, Inbox, Letter
from tokendyno.backend.messages import (
    Amount,
    Cancel,
    Command,
    Event,
    Finished,
    Generate,
    Load,
    Loaded,
    Progress,
    Reading,
    Ready,
    Started,
    Tokens,
)

PROMPT_TOKENS = 5
Fault = Literal["", "silent", "dies", "dies reading", "stalls", "slow"]


class ScriptedExecutor:
    """Answers as a worker does.

    fault  what it does instead of generating: silent: it waits for a Cancel; stalls: it reports a download at a rate
           that changes while no byte arrives; dies reading: while it uses the tokenizer; slow: a token every 0.1 s
    """

    def __init__(self, inbox: Inbox, fault: Fault = "", started: "list[ScriptedExecutor] | None" = None) -> None:
        self._inbox, self._fault = inbox, fault
        self.load_key = self.note = ""
        self.alive = True
        self.pids: tuple[int, ...] = ()
        self.commands: list[Command] = []
        if started is not None:
            started.append(self)
        self._answer(Ready(0, 0.0, {}))

    @property
    def resident_bytes(self) -> Mapping[int, int]:
        return {HOST: 1 << 20}

    def send(self, command: Command) -> None:
        self.commands.append(command)
        match command:
            case Load():
                self._answer(Progress("load", "begin", 0.0), Loaded(8, 2, reused=False), Progress("load", "end", 0.1))
            case Generate(max_new_tokens=count) if not self._fault:
                self._answer(Progress("run", "begin", 0.0), Started(PROMPT_TOKENS, 1, count, []), tokens(count))
                self._answer(finished("length"))
            case Generate(max_new_tokens=count):
                self._answer(Progress("run", "begin", 0.0))
                if self._fault == "slow":
                    threading.Thread(target=self._generate_slowly, args=(count,), daemon=True).start()
                if self._fault == "stalls":
                    threading.Thread(target=self._stall, daemon=True).start()
                if self._fault == "dies reading":
                    self._answer(Reading("tokenizer (tokenizer.json)", "tokenize"))
                if self._fault.startswith("dies"):
                    self.alive = False
                    self._inbox.put(Letter(self, Died("The script says so.")))
            case Cancel():
                self._answer(finished("cancelled"))
            case _:
                pass

    def end(self) -> None:
        self.alive = False

    def _stall(self) -> None:
        while self.alive:
            rate = 1e9 / time.monotonic()
            self._answer(Progress("download", "step", 0.0, 0.5, amount=Amount(5, 10, rate)))
            time.sleep(0.02)

    def _generate_slowly(self, count: int) -> None:
        self._answer(Started(PROMPT_TOKENS, 1, count, []))
        for index in range(count):
            time.sleep(0.1)
            self._answer(tokens(1, index))
        self._answer(finished("length"))

    def _answer(self, *events: Event) -> None:
        for event in events:
            self._inbox.put(Letter(self, event))


def tokens(count: int, first: int = 0) -> Tokens:
    """Tokens of a run from the first one on, 10 ms each."""
    seconds = [0.01 * (first + index + 1) for index in range(count)]
    zeros = [0] * count
    return Tokens(first, seconds, [0.01] * count, zeros, zeros, [1 << 20] * count, list(range(count)), "x" * count)


def finished(reason: Literal["length", "cancelled"]) -> Finished:
    """The end of a run."""
    return Finished(reason, "", 0.01, 0.1, 1 << 20, "scripted", "scripted", [], {})


SCRIPTED = ExecutorKind(ScriptedExecutor)
