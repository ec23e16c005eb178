"""A model that is kept in this process, for whoever imports tokendyno, run by the worker's own code in one thread for
all models: compiled and captured code belongs to its thread."""

import atexit
import contextlib
import os
import queue
import sys
import threading
import weakref
from collections.abc import Callable, Collection
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any, TypeVar

from tokendyno.backend.arms.check import Checked
from tokendyno.backend.engine.prediction import predict
from tokendyno.backend.errors import InputError, RunFailed
from tokendyno.backend.executors.in_process import END_WAIT_S
from tokendyno.backend.executors.subprocess import worker_variables
from tokendyno.backend.hardware import Machine
from tokendyno.backend.messages import Event, Generate, Load, Reading, Ready, Started
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.paths import remove_scratch
from tokendyno.backend.predict.pages import pages_of
from tokendyno.backend.redact import redact
from tokendyno.backend.runs.records import ArmEvent, Created, Ended
from tokendyno.backend.runs.run import Run

if TYPE_CHECKING:
    from tokendyno.backend.worker.load.loader import LoadedModel
    from tokendyno.backend.worker.measure.stream import Pieces
    from tokendyno.backend.worker.runners.texts import Texts, Token
    from tokendyno.backend.worker.serve import Worker

T = TypeVar("T")


class _Turns:
    """A thread that carries work out in turn. It does not end: what torch's compiler keeps for it would be freed then,
    by an interpreter that is gone."""

    def __init__(self) -> None:
        self.ending = threading.Event()
        self._waiting: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="tokendyno-model", daemon=True)
        self._lock = threading.Lock()

    def submit(self, work: Callable[[], T]) -> "Future[T]":
        """Do it after what was asked before."""
        with self._lock:
            if self._thread.ident is None:
                self._thread.start()
                atexit.register(self._end)
        done: Future[T] = Future()
        self._waiting.put((done, work))
        return done

    def _work(self) -> None:
        while True:
            done, work = self._waiting.get()
            try:
                done.set_result(work())
            except BaseException as error:  # a thread has nobody else to tell
                done.set_exception(error)
            del done, work  # they hold a model

    def _end(self) -> None:
        self.ending.set()
        last = self.submit(lambda: None)
        wait([last], END_WAIT_S)


_THREAD = _Turns()
_CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
_compiling: "weakref.ref[InProcessModel] | None" = None


class InProcessModel:
    """One loaded model with its course. Any thread may call; what it asks for waits for what was asked before."""

    def __init__(self, created: Created, checked: Checked, facts: ModelFacts, machine: Machine) -> None:
        self.created, self.checked, self.facts, self._machine = created, checked, facts, machine
        self.arm = created.arms[0].name
        self.run = Run(created, live=True)  # of the load, then of the latest measured run
        self._loading: list[ArmEvent] = []
        self._worker: Worker | None = None
        self._texts: Texts | None = None
        self._undo, self._reading = contextlib.ExitStack(), threading.Lock()
        require_in_process(checked, facts)
        generate = checked.plan.generate
        self._compiles = generate.compile_mode is not None or checked.plan.load.attention == "flex_attention"
        self._claim()

    # --- for every thread -------------------------------------------------------------------------

    def load(self) -> "Future[None]":
        """Begin to load; `run` has its progress. The answer raises InputError or RunFailed."""
        return self._submit(self._load)

    @property
    def loaded(self) -> "LoadedModel":
        """The model with its tokenizer. InputError once it is closed."""
        model = self._worker.model if self._worker is not None else None
        if model is None:
            raise InputError("This model is closed. Load it again with td.load.")
        return model

    @property
    def failure(self) -> str:
        """Why no text can be generated any more; "" where they can."""
        return str(self._texts.failure or "") if self._texts is not None else ""

    def tell(
        self,
        job: Generate,
        take: "Callable[[Token], object]",
        stop: Callable[[], bool],
        ends: Collection[int],
        likely: int,
    ) -> "Future[None]":
        """Generate; `take`, `ends` and `likely` are those of `texts.Text` and `texts.stream`."""
        from tokendyno.backend.worker.runners.texts import Text, stream

        if (texts := self._texts) is not None:
            text = Text(job, take, stop, {*ends, *(() if job.ignore_eos else self.loaded.eos)})
            if texts.join(text):
                _THREAD.submit(lambda: self._work_at(texts))
            return text.done

        text = Text(job, take, lambda: stop() or _THREAD.ending.is_set(), ends)
        return self._submit(lambda: stream(self._ready().take_course(job.plan), text, likely))

    def text_ids(self, text: str) -> list[int]:
        """The tokens of a text. InputError where the tokenizer fails on it."""
        from tokendyno.backend.worker.load.check import token_ids

        with self._reading:
            return token_ids(self.loaded.tokenizer, text)

    def chat_ids(self, messages: list[dict[str, Any]], reasoning: str) -> list[int]:
        """The tokens of a conversation, up to where the answer begins. InputError where no template renders it."""
        from tokendyno.backend.worker.prompt import conversation_ids

        with self._reading:
            return conversation_ids(self.loaded.tokenizer, messages, reasoning)

    def pieces(self) -> "Pieces":
        """What turns the tokens of one text into pieces of text."""
        from tokendyno.backend.worker.measure.stream import Pieces

        return Pieces(self.loaded.tokenizer)

    def measure(self, job: Generate, created: Created) -> "Future[Run]":
        """A measured run, as a worker carries it out. The answer is the run, which has ended."""

        def measured() -> Run:
            worker = self._ready()
            self.run = Run(created, live=True)
            for event in self._loading:
                self.run.append(event)
            worker.carry_out(job)
            self.run.append(Ended(self.run.elapsed_s, "done"))
            return self.run

        return self._submit(measured)

    def close(self) -> None:
        """Free the model, after what was asked before."""
        if self._worker is not None:
            self._submit(self._free).result()

    # --- the model's thread -----------------------------------------------------------------------

    def _submit(self, work: Callable[[], T]) -> "Future[T]":
        return _THREAD.submit(lambda: self._explained(work))

    def _explained(self, work: Callable[[], T]) -> T:
        """What broke in a sentence, with what libraries logged before it."""
        _prepare_imports()
        from tokendyno.backend.worker.errors import explain
        from tokendyno.backend.worker.serve import Reports

        reports = Reports()
        try:
            with reports.listening():
                return work()
        except InputError:
            raise
        except Exception as error:
            sentence, advice, _ = explain(error)
            logged = f" Logged before that: {reports.text().rstrip('.')}." if reports.text() else ""
            raise RunFailed(redact(f"{sentence}{logged} {advice}".strip())) from error

    def _load(self) -> None:
        from tokendyno.backend.worker.channel import Channel
        from tokendyno.backend.worker.serve import Worker, require_usual_settings, restored_settings

        require_usual_settings()
        self._undo.push(restored_settings())
        worker = Worker(Channel(self._report), threading.Event(), shared_process=True)
        worker.carry_out(Load(self.checked.plan, self.checked.memory.weights))
        self._worker = worker
        if (traffic := self.created.request.traffic) is not None:
            from tokendyno.backend.worker.runners.texts import Texts

            batch = self.checked.plan.generate.batch
            self._texts = Texts(self.loaded, batch, pages_of(traffic, batch.page_tokens), traffic.concurrent)

    def _work_at(self, texts: "Texts") -> None:
        def work() -> None:
            self._ready()
            texts.work(_THREAD.ending.is_set)

        try:
            self._explained(work)
        except Exception as error:
            texts.fail(error)

    def _ready(self) -> "Worker":
        """The worker, with what is the process's set as its model needs it."""
        from tokendyno.backend.worker.load.loader import choose_threads

        if self._worker is None:
            raise InputError("This model is closed. Load it again with td.load.")
        if self.checked.plan.load.device == "cpu":
            choose_threads(self.loaded.weight_bytes)  # another model may have changed it
        return self._worker

    def _report(self, event: Event) -> None:
        if isinstance(event, Ready | Reading):
            return
        record = ArmEvent(self.arm, 0, self.run.elapsed_s, event)
        if self._worker is None:
            self._loading.append(record)
        self.run.append(record)
        if isinstance(event, Started):
            self.run.append(predict(self.arm, self.checked, self.facts, self._machine, event))

    def _claim(self) -> None:
        """torch.compile has one state and one cache per process. InputError where another model uses them."""
        global _compiling
        if not self._compiles:
            return
        other = _compiling() if _compiling is not None else None
        if other is not None and other._worker is not None:
            raise InputError(
                "Another model in this process has compiled code, and torch.compile has one state per process. Close "
                "that one first (model.close()), or load this one in another process."
            )
        _compiling = weakref.ref(self)
        for name in _CACHES:
            self._undo.callback(_set_variable, name, os.environ.get(name))

    def _free(self) -> None:
        from tokendyno.backend.worker.serve import free_memory

        if self._texts is not None:
            self._texts.close()
        self._worker = self._texts = None
        self._undo.close()
        free_memory(self._compiles)


def require_in_process(checked: Checked, facts: ModelFacts) -> None:
    """InputError where one process, which is somebody else's too, cannot carry out the arm."""
    parallel = checked.plan.load.parallel
    if facts.kind == "encoder":
        raise InputError(f"{facts.no_tokens}: it generates no tokens. Measure it with td.run, or load a decoder.")
    if parallel.ranks > 1:
        alone = "leave parallel out, or take parallel=device-map-2, which is one process"
        raise InputError(
            f"parallel={checked.planned['parallel']} runs {parallel.ranks} processes, and td.load has this one. "
            f"Measure it with td.run, or {'leave parallel out' if checked.plan.load.device == 'cpu' else alone}."
        )


def _prepare_imports() -> None:
    """Before torch is imported for the first time: what it reads from the environment then."""
    if "torch" not in sys.modules:
        os.environ.update(worker_variables())
        atexit.register(remove_scratch, os.getpid())


def _set_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
