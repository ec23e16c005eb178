"""Texts whose tokens are handed on as they come, and nothing is measured: one, or several by continuous batching."""

import os
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import torch
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)
from transformers.generation.continuous_batching.cb_logits_processors import (
    ContinuousBatchingLogitsProcessor,
    ContinuousBatchingLogitsProcessorList,
)

from tokendyno.backend.errors import InputError, RunFailed
from tokendyno.backend.messages import Generate
from tokendyno.backend.plan import BatchPlan
from tokendyno.backend.worker.load.loader import LoadedModel
from tokendyno.backend.worker.loop.step import scored_ids
from tokendyno.backend.worker.measure.finite import BestScores, NotFinite, watch_pages
from tokendyno.backend.worker.prompt import read_prompt
from tokendyno.backend.worker.runners.continuous import close_manager, new_manager, read_last
from tokendyno.backend.worker.runners.course import Course
from tokendyno.backend.worker.runners.decode import Decoding, Unmeasured


@dataclass(frozen=True, slots=True)
class Token:
    """A token. `nats`: its log-probability, and that of the likeliest ones with their ids, the likeliest first; None
    and empty where nobody asked. They are of what the model says, before temperature and filters."""

    id: int
    nats: float | None = None
    likeliest: tuple[tuple[int, float], ...] = ()


@dataclass(eq=False, slots=True)
class Text:
    """A text that is generated.

    take  takes each token, in the model's thread
    stop  asked at each token: True ends the text
    ends  ids that end it
    done  of one among several: that it has ended
    sent  tokens that were taken
    """

    job: Generate
    take: Callable[[Token], object]
    stop: Callable[[], bool]
    ends: Collection[int]
    done: "Future[None]" = field(default_factory=Future)
    sent: int = 0


def stream(course: Course, text: Text, likely: int) -> None:
    """Generate one text, which the model's own EOS ends too. NotFinite at the end where one of its tokens was chosen
    from noise. `likely`: how many of the likeliest tokens come with each; 0: none, and no log-probability."""
    session, decoding = course.session, course.generation
    assert isinstance(decoding, Decoding)
    task = decoding.prepare(text.job)
    course.make_ready(task)
    cache = decoding.cache(task)
    torch.manual_seed(text.job.seed)
    session.best.forget()
    listener = _Listener(task.prompt.ids, text, likely)
    decoding.loop.generate(replace(task, listener=listener), cache, listener)
    session.compiling.publish()
    session.best.check()


class _Listener(Unmeasured):
    """Hands on the tokens of one generation, of either loop.

    likely     how many of the likeliest tokens are wanted of each
    processor  what has to see the scores of `generate` for that
    likeliest  set by the custom loop: `DecodeLoop.likeliest`
    """

    likeliest: Any = None

    def __init__(self, ids: torch.Tensor, text: Text, likely: int) -> None:
        super().__init__(text.stop)
        self._text, self.likely = text, likely
        self._length, self._ended = ids.shape[1], False
        self.processor = _Distributions() if likely else None

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """From `generate`, after each step."""
        rows = self.processor.take() if self.processor is not None else {}
        for place, token in enumerate(input_ids[0, self._length :].tolist(), self._length):
            if not self.likely:
                self._hand_on(Token(token))
                continue
            best, nats = rows[place].topk(self.likely), float(rows[place][token])  # log-probabilities (V,)
            self._hand_on(Token(token, nats, tuple(zip(best.indices.tolist(), best.values.tolist(), strict=True))))
        self._length = input_ids.shape[1]
        return super().__call__(input_ids, scores)

    def tell(self, event: Any, ids: list[int]) -> None:
        """From the custom loop, once a token is known to count."""
        if not self.likely:
            self._hand_on(Token(ids[0]))
            return
        likeliest, nats = self.likeliest(self._text.sent)
        self._hand_on(Token(ids[0], nats[0], tuple(zip(likeliest, nats[1:], strict=True))))

    def stopping(self) -> bool:
        return self._ended or super().stopping()

    def _hand_on(self, token: Token) -> None:
        if not self._ended:  # a step with drafts may come to tokens behind the last
            self._text.sent += 1
            self._ended = token.id in self._text.ends
            self._text.take(token)


class _Distributions(LogitsProcessor):  # type: ignore[misc]
    """Keeps what `generate` chooses from: a row (V,) of log-probabilities for each place in the text, drafts included.
    Drafting asks too, before the model has said anything: what is said last of a place counts."""

    def __init__(self) -> None:
        self._rows: dict[int, torch.Tensor] = {}

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Shapes: input_ids (1, length so far), scores (1, V) float32."""
        self._rows[input_ids.shape[1]] = scores[0].float().log_softmax(-1)
        return scores

    def take(self) -> dict[int, torch.Tensor]:
        rows, self._rows = self._rows, {}
        return rows


# --- several at once ------------------------------------------------------------------------------


class Texts:
    """The texts of one model: `rows` at once, in a KV cache of so many pages. Any thread may `join`; all else is of the
    model's thread."""

    def __init__(self, model: LoadedModel, plan: BatchPlan, pages: int, rows: int) -> None:
        self._model, self._plan, self._pages, self._rows = model, plan, pages, rows
        self._best = BestScores(model.model.dtype)
        self._lock, self._working = threading.Lock(), False
        self._joining: list[Text] = []
        self._running: dict[str, Text] = {}
        self._names = count()
        self._manager: Any = None
        self.failure: Exception | None = None  # after which there are no more texts

    def join(self, text: Text) -> bool:
        """Add a text. True where nobody works at texts: whoever joined then sees to it."""
        with self._lock:
            if self.failure is not None:
                text.done.set_exception(self.failure)
                return False
            self._joining.append(text)
            idle, self._working = not self._working, True
            return idle

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def work(self, ending: Callable[[], bool]) -> None:
        """Generate until all texts have ended, those too that join meanwhile. `ending`: all are to end."""
        if self.failure is not None:
            return
        manager = self._manager = self._manager or self._new_manager()
        processor, in_flight = manager.batch_processor, 0
        while self._admit(manager, ending()):
            if processor.prepare_next_batch():
                manager._generation_step()
                in_flight += 1
            if in_flight > int(processor.use_async_batching):  # then a step is read when the next one is under way
                processor.update_batch()
                in_flight -= 1
            self._hand_on(manager)
        if in_flight:
            read_last(processor)

    def fail(self, error: Exception) -> None:
        """All texts end with this error, and those that come."""
        with self._lock:
            self.failure = error
            ended, self._joining = [*self._running.values(), *self._joining], []
        self._running = {}
        for text in ended:
            text.done.set_exception(error)
        self.close()

    def close(self) -> None:
        if self._manager is not None:
            close_manager(self._model, self._manager)
        self._manager = None

    def _new_manager(self) -> Any:
        """A manager with its cache and first graphs, which draws for each text as that one asks."""
        manager = new_manager(self._model, self._plan, self._pages, self._rows, int.from_bytes(os.urandom(4)))
        vocabulary = scored_ids(self._model.model)
        filters = [TemperatureLogitsWarper(1.0), TopKLogitsWarper(vocabulary), TopPLogitsWarper(1.0), Draw()]
        manager.logit_processor = ContinuousBatchingLogitsProcessorList(LogitsProcessorList(filters), True)
        manager.logit_processor.tensors_required += 1  # it counts those that it converted
        try:
            manager.batch_processor = manager._create_batch_processor()
            watch_pages(manager.batch_processor, self._best)
            manager.warmup()
        except BaseException:
            close_manager(self._model, manager)
            raise
        return manager

    def _admit(self, manager: Any, ending: bool) -> bool:
        """Take who has joined, let go who is to end. False once there is nobody."""
        with self._lock:
            joined, self._joining = self._joining, []
            self._working = bool(joined or self._running)
        for text in joined:
            job, name = text.job, str(next(self._names))
            try:
                read_prompt(self._model, job)
            except InputError as error:
                text.done.set_exception(error)
                continue
            drawn, vocabulary = job.temperature > 0, scored_ids(self._model.model)
            manager.add_request(
                job.prompt_ids,
                name,
                job.max_new_tokens,
                streaming=True,
                eos_token_id=list(text.ends),
                temperature=float(job.temperature) if drawn else 1.0,
                top_k=min(job.top_k, vocabulary) if drawn and job.top_k else vocabulary,
                top_p=float(job.top_p) if drawn else 1.0,
                drawn=drawn,
            )
            self._running[name] = text
        for name in [name for name, text in self._running.items() if ending or text.stop()]:
            self._let_go(manager, name).set_result(None)
        return self._working

    def _let_go(self, manager: Any, name: str) -> "Future[None]":
        manager.cancel_request(name)
        return self._running.pop(name).done

    def _hand_on(self, manager: Any) -> None:
        """Pass on what the latest step came to. Noise in the scores may be of any of them."""
        ended, outputs = [], manager.output_router.output_queue
        while not outputs.empty():
            output = outputs.get_nowait()
            text = self._running.get(output.request_id)
            if text is None:  # let go
                continue
            for token in output.generated_tokens[text.sent :]:
                text.sent += 1
                text.take(Token(token))
            if output.is_finished():
                ended.append((self._running.pop(output.request_id).done, output.error))
        try:
            if ended:
                self._best.check()
        except NotFinite as error:
            noise = f"{error} {error.advice}"
            ended = [(done, noise) for done, _ in ended]
            ended += [(self._let_go(manager, name), noise) for name in list(self._running)]
        for done, failed in ended:
            done.set_exception(RunFailed(failed)) if failed else done.set_result(None)


class Draw(ContinuousBatchingLogitsProcessor):  # type: ignore[misc]
    """Draws a token for those texts that ask for it, which the manager does for all or none: the best of scores with
    Gumbel's noise is a draw from their probabilities. The other texts keep their scores, and so their best token."""

    supported_kwargs = {"drawn": bool}
    ignored_kwargs = ()

    def fill_defaults(self, int32_tensor: Any) -> None:
        int32_tensor.fill_(0)

    def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> Any:
        drawn = [future.state.logit_processor_kwargs.get("drawn", False) for future in requests_with_new_token]
        return torch.tensor(drawn, dtype=torch.int32)

    def __call__(self, scores: Any, tensor_arg: Any) -> Any:
        """Shapes: scores (rows, V) float32, tensor_arg (rows or more,) int32."""
        noise = torch.empty_like(scores).exponential_().clamp_min_(1e-30).log_()
        return torch.where(tensor_arg[: len(scores), None].bool(), scores - noise, scores)
