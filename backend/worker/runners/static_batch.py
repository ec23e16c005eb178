"""Static batching: requests that have arrived form a padded batch, and the next one starts when its longest is done."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import msgspec
import torch
from transformers import StoppingCriteria

from tokendyno.backend import counts
from tokendyno.backend.messages import DECODE, IDLE, PREFILL, Generate
from tokendyno.backend.predict.lengths import rounded
from tokendyno.backend.worker.measure.meter import moment, seconds_between
from tokendyno.backend.worker.measure.steps import Part, StepLog, StepRow
from tokendyno.backend.worker.prompt import Prompt, TokenizedRequest
from tokendyno.backend.worker.runners.batch import Batches, most_of
from tokendyno.backend.worker.runners.decode import Decoding
from tokendyno.backend.worker.runners.generation import Measured, Outcome, Session, Task
from tokendyno.backend.worker.runners.token_loops import TokenLoop


class StaticBatches(Batches):
    """A `Generation` of batches by either loop. With `batching=off` each request is a batch of its own."""

    def __init__(self, session: Session, loop: TokenLoop) -> None:
        super().__init__(session)
        self._loop = loop
        self._decoding = Decoding(session, loop)  # of the first batch: warm-up and further steps
        self.warm_up, self.repeat, self.cache = self._decoding.warm_up, self._decoding.repeat, self._decoding.cache

    def prepare(self, job: Generate) -> Task:
        notes = self._read(job)
        requests = self._requests
        first = choose(job, [request for request in requests if request.arrival_s <= requests[0].arrival_s])
        prompt = self._prompt(job, first)
        prompt.notes += notes
        task = self._decoding.task(job, prompt, most_of(job, first)[2])
        return dataclasses.replace(task, most=most_of(job, requests), window=None)

    def _prompt(self, job: Generate, batch: Sequence[TokenizedRequest]) -> Prompt:
        """A batch padded on the left to its longest prompt, or to a rounded length."""
        shapes, pad = job.plan.generate.shapes, self._session.model.pad
        length = rounded(shapes, max(len(row.ids) for row in batch))
        rows = rows_of(job) if shapes in ("padded", "buckets") else len(batch)
        filled = [*(row.ids for row in batch), *[batch[0].ids] * (rows - len(batch))]
        ids = torch.tensor([[pad] * (length - len(row)) + row for row in filled])
        mask = torch.tensor([[0] * (length - len(row)) + [1] * len(row) for row in filled])
        device = self._session.model.model.device
        return Prompt(ids.to(device), mask.to(device))

    def around(self, task: Task, meter: StepLog) -> Any:
        self._loop.own_steps = 0  # those of the warm-up prove nothing about the run
        self._batches = self._rows_seen = 0
        self._unread: Sequence[TokenizedRequest] = ()  # the batch whose prompts the next pass reads
        self._widest = 0, 0  # for the proof of shapes: positions of the longest batch, tokens of its longest prompt
        return self._session.model.model.register_forward_pre_hook(self._note_prompts, with_kwargs=True)

    def generate(self, run: Measured) -> None:
        job, log, waiting = run.task.job, run.meter, list(self._requests)
        while waiting and not self._session.cancelled.is_set():
            self._await(log, waiting[0])
            arrived = [request for request in waiting if request.number < log.arrived(log.now_s())]
            if arrived:
                batch = choose(job, arrived)
                self._run_batch(run, batch)
                waiting = [request for request in waiting if request not in batch]
        self._end_cancelled(log)

    def _run_batch(self, run: Measured, batch: list[TokenizedRequest]) -> None:
        _, output, places = most_of(run.task.job, batch)
        job = msgspec.structs.replace(run.task.job, max_new_tokens=output)
        task = Task(job, self._prompt(job, batch), places)
        run.meter.enter([request.number for request in batch])
        self._batches += 1
        self._unread = batch
        eos = set() if job.ignore_eos else set(self._session.model.eos)
        meter = BatchMeter(task, batch, run.meter, self._session.cancelled.is_set, eos)
        run.cache = self.cache(task)
        self._loop.generate(task, run.cache, meter)

    def _note_prompts(self, model: Any, args: Any, kwargs: Any) -> None:
        """Called before each pass of the model: what it receives of a batch's prompts."""
        ids, batch = kwargs.get("input_ids"), self._unread
        if ids is None or not batch:
            return
        self._unread = ()
        rows, width = ids.shape
        self._rows_seen += min(len(batch), rows)
        self._widest = max(self._widest, (width, max(len(row.ids) for row in batch)))

    def outcome(self, run: Measured) -> Outcome:
        outcome, pairs = super().outcome(run), self._pairs(run.meter)
        counted, (width, longest) = outcome.counts, self._widest
        counted.prompt = counts.Prompt(positions=width, padding=width - longest)
        counted.passes = msgspec.structs.replace(counted.passes, own_steps=self._loop.own_steps)
        counted.static = counts.StaticBatches(
            batches=self._batches,
            rows_seen=self._rows_seen,
            order_pairs=len(pairs),
            order_arrival=sum(a.number < b.number for a, b in pairs),
            order_sorted=sum(a.max_new_tokens <= b.max_new_tokens for a, b in pairs),
        )
        return outcome

    def _pairs(self, log: StepLog) -> list[tuple[TokenizedRequest, TokenizedRequest]]:
        """Requests that followed each other into batches although the later one had arrived when the earlier began."""
        requests = self._requests
        order = [
            (requests[part.request], row.begin_s) for row in log.rows for part in row.parts if part.kind == PREFILL
        ]
        return [(a, b) for (a, begin_s), (b, _) in itertools.pairwise(order) if b.arrival_s <= begin_s]


def rows_of(job: Generate) -> int:
    return job.batch_size if job.plan.generate.batch.kind != "off" else 1


def choose(job: Generate, arrived: list[TokenizedRequest]) -> list[TokenizedRequest]:
    """The next batch among requests that have arrived; sorted: those with the fewest new tokens first."""
    if job.plan.generate.batch.order == "sorted":
        arrived = sorted(arrived, key=lambda request: (request.max_new_tokens, len(request.ids), request.number))
    return arrived[: rows_of(job)]


class BatchMeter(StoppingCriteria):  # type: ignore[misc]
    """Notes each step of one static batch in the log, and tells `generate` which rows have ended."""

    def __init__(self, task: Task, batch: list[TokenizedRequest], log: StepLog, stop: Any, eos: set[int]) -> None:
        self._batch, self._log, self._stop, self._eos = batch, log, stop, eos
        rows, width = task.prompt.ids.shape
        self._empty_rows = int(rows) - len(batch)
        self._padding = int(width) * len(batch) - sum(len(request.ids) for request in batch)
        self._tokens_left = [request.max_new_tokens for request in batch]
        self._first = True
        self._arrived, self._waiting = -1, 0
        self._done: tuple[bool, ...] = ()
        self._answer: Any = None
        self._device = task.prompt.ids.device
        self._origin_s = self._begin_s = log.now_s()
        self._origin = self.event()
        log.ahead = 0  # what an earlier batch launched and nobody waited for

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """Shapes: input_ids (B, length so far); returns (B,) bool, True = finished. Reading the ids waits for the
        device, as `generate` itself does after each step."""
        self._note(input_ids[:, -1].tolist(), self._log.now_s())
        ended = self.stopping()
        done = (*(ended or left <= 0 for left in self._tokens_left), *[True] * self._empty_rows)
        if done != self._done:  # a copy to the device waits for it
            self._done, self._answer = done, torch.tensor(done, device=self._device)
        return self._answer

    # --- as the custom decode loop tells it: see `loop.TokenMeter` ------------------------------------

    def event(self) -> Any:
        self._log.ahead += 1
        return moment(self._device.type == "cuda")

    def tell(self, event: Any, ids: list[int]) -> None:
        self._log.ahead -= 1
        self._note(ids, self._origin_s + seconds_between(self._origin, event))

    def stopping(self) -> bool:
        return bool(self._stop()) or all(left <= 0 for left in self._tokens_left)

    def _note(self, made: list[int], now_s: float) -> None:
        """A step that gave these tokens, one a row, has ended."""
        parts, ends = [], []
        for row, request in enumerate(self._batch):
            if self._tokens_left[row] <= 0:
                parts.append(Part(request.number, IDLE, 1))
                continue
            token, self._tokens_left[row] = made[row], self._tokens_left[row] - 1
            kind, tokens = (PREFILL, len(request.ids)) if self._first else (DECODE, 1)
            parts.append(Part(request.number, kind, tokens, token))
            if token in self._eos:
                self._tokens_left[row] = 0
            if self._tokens_left[row] <= 0:
                ends.append((request.number, "eos" if token in self._eos else "length"))
        parts += [Part(-1, IDLE, 1)] * self._empty_rows
        self._note_waiting(now_s)
        self._log.add(StepRow(self._begin_s, now_s, parts, self._padding if self._first else 0, self._waiting))
        for number, reason in ends:
            self._log.end(number, now_s, reason)  # type: ignore[arg-type]
        self._begin_s, self._first = now_s, False

    def _note_waiting(self, now_s: float) -> None:
        """Requests that wait for this batch to end; looked for only where more have arrived."""
        arrived = self._log.arrived(now_s)
        if arrived == self._arrived:
            return
        self._arrived, waiting = arrived, self._log.waiting()
        self._waiting = len(waiting)
        for request in waiting:
            self._log.wait(self._begin_s, request, "batch")
