"""The worker's loop: commands in, events out, one at a time.

A thread reads commands, so that a Cancel arrives while the main thread generates. When the pipe ends, the
engine is gone and so is this process.
"""

import os
import queue
import sys
import threading
import time
import traceback

_BEGIN_S = time.perf_counter()

import torch
import transformers

from backend.worker.light import light_imports

with light_imports():
    from transformers import AutoModelForCausalLM, AutoTokenizer, GptOssForCausalLM  # noqa: F401

from backend import hardware
from backend.errors import InputError
from backend.messages import (
    Cancel,
    Command,
    Failed,
    Generate,
    Load,
    Loaded,
    Ready,
    Shutdown,
    decode_command,
)
from backend.optimizations.tensors import numbers
from backend.worker.decode import Decoder
from backend.worker.faults import explain
from backend.worker.forward import Forwarder
from backend.worker.loader import load
from backend.worker.outbox import Outbox


class Worker:
    """At most one loaded model, and the commands that concern it."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._decoder: Decoder | Forwarder | None = None
        self._key = ""

    def read_commands(self) -> None:
        """Body of the reading thread. A Cancel counts for the Generate before it, never for the next one."""
        code = 1  # a worker that cannot read its commands must not live on deaf
        try:
            for line in sys.stdin.buffer:
                command = decode_command(line)
                decoder = self._decoder
                if isinstance(command, Cancel):
                    if decoder is not None:
                        decoder.cancelled.set()
                    continue
                if isinstance(command, Generate) and decoder is not None:
                    decoder.cancelled.clear()
                self._commands.put(command)
            code = 0
        except Exception:
            traceback.print_exc()
        os._exit(code)

    def serve(self) -> None:
        """Carry out commands until Shutdown. A failed command is reported; a fatal one ends the process."""
        while True:
            command = self._commands.get()
            try:
                match command:
                    case Load():
                        self._load(command)
                    case Generate():
                        if self._decoder is None or command.plan.load_key != self._key:
                            raise RuntimeError("Generate came before its Load")
                        self._decoder.run(command)
                    case Shutdown():
                        return
                    case Cancel():
                        pass
            except Exception as error:
                failed = self._failed(error)
                self._outbox.send(failed)
                if failed.fatal:
                    return

    def _load(self, command: Load) -> None:
        reused = self._decoder is not None and self._key == command.plan.load_key
        if not reused:
            self._decoder, self._key = None, ""
            bench = load(command.plan.load, self._outbox, command.expected_bytes)
            if bench.plan.device == "cuda":
                torch.cuda.empty_cache()  # what only the load needed would be counted as the run's
            runner = Forwarder if bench.encoder else Decoder
            self._decoder, self._key = runner(bench, self._outbox), command.plan.load_key
        assert self._decoder is not None
        bench = self._decoder.bench
        parameters, seen = numbers(bench.model), bench.observed
        loaded = ({}, {}) if reused else (seen.stages_s, seen.peak_bytes)  # nothing was loaded this time
        self._outbox.send(Loaded(bench.weight_bytes, parameters, reused, *loaded))

    def _failed(self, error: Exception) -> Failed:
        sentence, advice, fatal = explain(error)
        detail = "".join(traceback.format_exception(error))[-8000:]
        print(detail, file=sys.stderr, flush=True)
        return Failed(self._outbox.phase, sentence, advice, detail, fatal, isinstance(error, InputError))


def serve(events_fd: int) -> None:
    """Say Ready, then serve. Called by `__main__` after the imports above."""
    transformers.utils.logging.disable_progress_bar()
    outbox = Outbox(events_fd)
    worker = Worker(outbox)
    threading.Thread(target=worker.read_commands, name="commands", daemon=True).start()
    found = {**hardware.versions(), "torch": str(torch.__version__)}
    if torch.cuda.is_available():
        found["cuda"] = str(torch.version.cuda)
    outbox.send(Ready(os.getpid(), time.perf_counter() - _BEGIN_S, found))
    worker.serve()
    os._exit(0)
