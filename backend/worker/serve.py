"""The worker's loop: carries out commands one at a time and reports into a channel; reads no file, ends no process."""

import os
import sys
import threading
import time
import traceback

_BEGIN_S = time.perf_counter()

import torch

from tokendyno.backend.worker.process import light_imports

with light_imports():
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer, GptOssForCausalLM  # noqa: F401

import gc
import logging
import re
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tokendyno.backend import hardware
from tokendyno.backend.errors import InputError
from tokendyno.backend.messages import Failed, Generate, Load, Loaded, Probe, Prove, Ready, Score
from tokendyno.backend.plan import Plan
from tokendyno.backend.redact import redact
from tokendyno.backend.worker.channel import Channel, Commands, Work
from tokendyno.backend.worker.errors import explain
from tokendyno.backend.worker.group import own_group
from tokendyno.backend.worker.load.check import announce
from tokendyno.backend.worker.load.loader import LoadedModel, load
from tokendyno.backend.worker.prove.tensor_bytes import parameter_count
from tokendyno.backend.worker.runners.course import Course, course_for

IMPORT_S = time.perf_counter() - _BEGIN_S
"""Seconds of the imports above; almost nothing where another thread of this process had done them before."""


class Worker:
    """At most one loaded model, and the course of its latest run. model: None while none is loaded."""

    def __init__(self, channel: Channel, cancelled: threading.Event, shared_process: bool) -> None:
        self._channel, self._cancelled, self._shared_process = channel, cancelled, shared_process
        self.model: LoadedModel | None = None
        self._course: Course | None = None
        self._load_key = ""
        self._weight_bytes = 0  # as loaded: bitsandbytes lays 4-bit weights out anew at a CPU's first step

    def carry_out(self, command: Work) -> None:
        """Answered by events; whatever it raises is for `failure` to explain."""
        match command:
            case Load():
                self._load(command)
            case Generate():
                self.take_course(command.plan, command.traffic is not None).run(command)
            case Score():
                self.take_course(command.plan).score(command)
            case Prove():
                assert self._course is not None
                self._course.prove()
            case Probe():
                assert self._course is not None
                self._course.probe(command.token_ids)

    def take_course(self, plan: Plan, many: bool = False) -> Course:
        """The course of a plan, whose model is loaded. `many`: it serves many requests."""
        assert self.model is not None and plan.load_key == self._load_key
        self._course = course_for(
            self.model, plan, self._channel, self._cancelled, self._shared_process, self._course, many
        )
        return self._course

    def _load(self, command: Load) -> None:
        reused = self.model is not None and self._load_key == command.plan.load_key
        if not reused:
            self.model, self._course, self._load_key = None, None, ""
            self.model = load(command.plan.load, self._channel, command.expected_bytes)
            self._load_key, self._weight_bytes = command.plan.load_key, self.model.weight_bytes
            if command.plan.load.device == "cuda":
                torch.cuda.empty_cache()  # memory that only the load needed would count as the run's
        assert self.model is not None
        observed = self.model.observed
        stages = ({}, {}, None) if reused else (observed.stages_s, observed.peak_bytes, observed.cached_share)
        parameters = parameter_count(self.model.model)
        own_group().exchange(b"loaded")  # a rank that could not load fails the load
        self._channel.send(Loaded(self._weight_bytes, parameters, reused, *stages))


def serve(
    commands: Commands,
    channel: Channel,
    shared_process: bool = False,
    cancelled: threading.Event | None = None,
    forked: bool = False,
) -> None:
    """Send Ready, then carry out commands until they end, or until one fails so that the process cannot be used again.

    shared_process  other work runs in this process too, so its memory is not this worker's alone
    cancelled       in place of the commands' own, where a group of ranks decides together
    forked          the imports were done before, by the process that this one was forked from
    """
    transformers.utils.logging.disable_progress_bar()
    worker = Worker(channel, cancelled or commands.cancelled, shared_process)
    reports = Reports()
    announce.set(channel.send)
    versions = {**hardware.versions(), "torch": str(torch.__version__)}
    if torch.cuda.is_available():
        versions["cuda"] = str(torch.version.cuda)
    channel.send(Ready(os.getpid(), 0.0 if forked else IMPORT_S, versions))
    for command in commands:
        try:
            with reports.listening():
                worker.carry_out(command)
        except Exception as error:
            failed = own_group().settle(failure(error, channel, reports.text()))
            channel.send(failed)
            if failed.fatal:
                return


def failure(error: Exception, channel: Channel, logged: str) -> Failed:
    """What the user is told of an exception, with what libraries logged; the traceback goes to standard error."""
    sentence, advice, fatal = explain(error)
    if logged and not isinstance(error, InputError):
        sentence = f"{sentence} Logged before that: {logged.rstrip('.')}."
    detail = "".join(traceback.format_exception(error))[-8000:]
    print(detail, file=sys.stderr, flush=True)
    return Failed(channel.phase, sentence, advice, detail, fatal, isinstance(error, InputError))


# --- reports -------------------------------------------------------------------------------------

MOST_RECORDS = 8
MOST_CHARACTERS = 1_200

_NOISE = re.compile(r"\s|Traceback |[-+|=\s]*$|Notes:|Key +\| Status")
"""Lines of a report that name no cause: indented ones (frames of a traceback), rules, headings."""


class Reports(logging.Handler):
    """Keeps the latest warnings and errors of all loggers while it is listening. Some libraries log the cause and only
    then raise: "look at the CONVERSION entries of the above report", says transformers."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._texts: deque[str] = deque(maxlen=MOST_RECORDS)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Forget what was logged before, and listen: to the root, and to loggers that do not pass their records on."""
        self._texts.clear()
        named = list(logging.root.manager.loggerDict.values())  # other threads add to it
        loggers = [logging.root, *(one for one in named if isinstance(one, logging.Logger) and not one.propagate)]
        for logger in loggers:
            logger.addHandler(self)
        try:
            yield
        finally:
            for logger in loggers:
                logger.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the lines of a record that say what failed and why, without secrets."""
        lines = [line for line in redact(record.getMessage()).splitlines() if line.strip() and not _NOISE.match(line)]
        text = "; ".join(" ".join(line.strip(" |").split()) for line in dict.fromkeys(lines))
        if text and text not in self._texts:
            self._texts.append(text)

    def text(self) -> str:
        """What was logged, newest last, in one line; "" if nothing was."""
        text = " / ".join(self._texts)
        if len(text) <= MOST_CHARACTERS:
            return text
        half = MOST_CHARACTERS // 2  # a report begins with what failed, and ends with why
        return f"{text[:half]} [...] {text[-half:]}"


# --- in somebody else's process: what libraries keep once for all of it ---------------------------


def require_usual_settings() -> None:
    """InputError where torch has settings under which an arm would not be what a worker measures."""
    dtype, precision = torch.get_default_dtype(), torch.get_float32_matmul_precision()
    changed = [
        *([f"torch.set_default_dtype({dtype})"] if dtype != torch.float32 else []),
        *([f"torch.set_float32_matmul_precision({precision!r})"] if precision != "highest" else []),
        *(["torch.use_deterministic_algorithms(True)"] if torch.are_deterministic_algorithms_enabled() else []),
    ]
    if changed:
        raise InputError(
            f"This process has {' and '.join(changed)}, so the arm would not compute what was measured. Undo "
            "that before td.load, or load the model in another process."
        )


def restored_settings() -> ExitStack:
    """Closing it gives back what a load changes: the number of CPU threads, and bars of progress, off from now on."""
    undo = ExitStack()
    undo.callback(torch.set_num_threads, torch.get_num_threads())
    if transformers.utils.logging.is_progress_bar_enabled():
        transformers.utils.logging.disable_progress_bar()
        undo.callback(transformers.utils.logging.enable_progress_bar)
    return undo


def free_memory(compiled: bool = False) -> None:
    """Free a model that was let go of, what was compiled for it, and memory of the GPU that torch reserves."""
    gc.collect()
    if compiled:
        torch._dynamo.reset()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
