"""Static batching: requests that have arrived form a padded batch, and the next one starts when its longest is done."""

import itertools
from typing import Any

import torch
from transformers import StoppingCriteria

from tokendyno.backend import counts
from tokendyno.backend.counts import Passes, RunCounts, StaticBatches
from tokendyno.backend.messages import DECODE, IDLE, PREFILL, Generate
from tokendyno.backend.plan import ShapesKind
from tokendyno.backend.predict.lengths import cache_places, rounded
from tokendyno.backend.worker.measure.steps import Part, StepLog, StepRow
from tokendyno.backend.worker.prompt.prompt import Asked, Prompt
from tokendyno.backend.worker.runners.base import Task
from tokendyno.backend.worker.runners.batch import BatchCourse
from tokendyno.backend.worker.runners.loop import LoopRunner


class StaticRunner(BatchCourse):
    """Batches of `generate`. With `batching=off` each request is a batch of its own."""

    _batches = 0
    _seen_rows = _seen_padding = 0
    _filled = 0  # rows of the batch under way that hold a request
    _unread = False  # no pass of the batch under way was seen: the next one reads its prompts, of one token or many
    _lengths: tuple[int, int] = (0, 0)
    _shapes: ShapesKind = "exact"
    _last_cache: Any = None

    def _first_task(self, job: Generate, asked: list[Asked]) -> Task:
        return self._task(job, choose(job, [one for one in asked if one.arrival_s <= asked[0].arrival_s]))

    def _task(self, job: Generate, batch: list[Asked]) -> Task:
        """A batch padded on the left to its longest prompt, or to a rounded length."""
        plan = job.plan.generate
        longest, output = (max(sizes) for sizes in zip(*((len(o.ids), o.max_new_tokens) for o in batch), strict=True))
        length = rounded(plan.shapes, longest)
        rows = rows_of(job) if plan.shapes in ("padded", "buckets") else len(batch)
        filled = [*(one.ids for one in batch), *[batch[0].ids] * (rows - len(batch))]
        pad = self.model.pad
        ids = torch.tensor([[pad] * (length - len(one)) + one for one in filled])
        mask = torch.tensor([[0] * (length - len(one)) + [1] * len(one) for one in filled])
        device = self.model.model.device
        return Task(job, Prompt(ids.to(device), mask.to(device)), cache_places(plan.shapes, longest, output))

    def _serve(self, task: Task, log: StepLog) -> None:
        job, left = task.job, list(self._asked)
        self._batches = self._seen_rows = self._seen_padding = 0
        self._lengths, self._shapes = (0, 0), job.plan.generate.shapes
        hook = self.model.model.register_forward_pre_hook(self._note_input, with_kwargs=True)
        try:
            while left and not self.cancelled.is_set():
                self._sleep_until(log, left[0].arrival_s)
                here = [one for one in left if one.number < log.arrived(log.now_s())]
                if here:
                    batch = choose(job, here)
                    self._run_batch(self._task(job, batch), batch, log)
                    left = [one for one in left if one not in batch]
        finally:
            hook.remove()

    def _run_batch(self, task: Task, batch: list[Asked], log: StepLog) -> None:
        log.enter([one.number for one in batch])
        self._batches += 1
        self._filled, self._unread = len(batch), True
        eos = set() if task.job.ignore_eos else set(self.model.eos)
        meter = BatchMeter(task, batch, log, self.cancelled.is_set, eos)
        output = max(one.max_new_tokens for one in batch)
        self._last_cache = self._new_cache(task)
        self._generate(task, self._last_cache, output, task.job.ignore_eos, meter)

    def _note_input(self, model: Any, args: Any, kwargs: Any) -> None:
        """What the model itself receives: rows, and padding in prompts."""
        ids = kwargs.get("input_ids")
        if ids is not None and self._unread:
            self._unread = False
            self._seen_rows += min(self._filled, int(ids.shape[0]))
            real = real_tokens(kwargs)
            if real is not None:
                real = real[: self._filled]
                self._seen_padding += int(len(real) * ids.shape[1] - real.sum())
                self._note_length(int(ids.shape[1]), int(real.max()))

    def _note_length(self, width: int, longest: int) -> None:
        """For the proof of shapes: the longest batch, or the first that was not rounded as planned."""
        width_kept, longest_kept = self._lengths
        good = rounded(self._shapes, longest_kept) == width_kept
        if not width_kept or (good and (width > width_kept or rounded(self._shapes, longest) != width)):
            self._lengths = width, longest

    def _cache_of(self) -> Any:
        cache, self._last_cache = self._last_cache, None
        return cache

    def _batch_counts(self, log: StepLog) -> RunCounts:
        pairs = self._pairs(log)
        width, longest = self._lengths
        batches = StaticBatches(
            batches=self._batches,
            rows_seen=self._seen_rows,
            padding_seen=self._seen_padding,
            order_pairs=len(pairs),
            order_arrival=sum(a.number < b.number for a, b in pairs),
            order_sorted=sum(a.max_new_tokens <= b.max_new_tokens for a, b in pairs),
        )
        return RunCounts(prompt=counts.Prompt(positions=width, padding=width - longest), static=batches)

    def _pairs(self, log: StepLog) -> list[tuple[Asked, Asked]]:
        """Requests that followed each other into batches although the later one had arrived when the earlier began."""
        order = [
            (self._asked[part.request], row.begin_s) for row in log.rows for part in row.parts if part.kind == PREFILL
        ]
        return [(a, b) for (a, begin_s), (b, _) in itertools.pairwise(order) if b.arrival_s <= begin_s]


class StaticLoopRunner(StaticRunner, LoopRunner):
    """Batches of the custom decode loop, whose step can be captured."""

    def _serve(self, task: Task, log: StepLog) -> None:
        self._loop_counts["own_steps"] = 0  # those of the warm-up prove nothing about the run
        super()._serve(task, log)

    def _batch_counts(self, log: StepLog) -> RunCounts:
        found = super()._batch_counts(log)
        found.passes = Passes(passes=len(log.rows), own_steps=int(self._loop_counts["own_steps"]))
        return found


def real_tokens(received: dict[str, Any]) -> torch.Tensor | None:
    """(B,) tokens of each row that are no padding, which is on the left, from the arguments of a prompt's pass; None if
    they do not tell. `generate` hands a static cache masks of four dimensions, but positions count from the first
    token in any case."""
    ids: torch.Tensor = received["input_ids"]
    mask, positions = received.get("attention_mask"), received.get("position_ids")
    if isinstance(mask, torch.Tensor) and mask.ndim == 2:
        return (mask[:, : ids.shape[1]] != 0).sum(1)
    if isinstance(positions, torch.Tensor) and positions.shape[0] == ids.shape[0]:
        return positions[:, -1] + 1
    return None


def rows_of(job: Generate) -> int:
    """Most rows of a batch."""
    return job.batch_size if job.plan.generate.batch.kind != "off" else 1


def choose(job: Generate, here: list[Asked]) -> list[Asked]:
    """The next batch among requests that have arrived; sorted: those with the fewest new tokens first."""
    if job.plan.generate.batch.order == "sorted":
        here = sorted(here, key=lambda one: (one.max_new_tokens, len(one.ids), one.number))
    return here[: rows_of(job)]


class BatchMeter(StoppingCriteria):  # type: ignore[misc]
    """Notes each step of one static batch in the log, and tells `generate` which rows have ended."""

    def __init__(self, task: Task, batch: list[Asked], log: StepLog, stop: Any, eos: set[int]) -> None:
        self._batch, self._log, self._stop, self._eos = batch, log, stop, eos
        rows, width = task.prompt.ids.shape
        self._empty = int(rows) - len(batch)
        self._padding = int(width) * len(batch) - sum(len(one.ids) for one in batch)
        self._left = [one.max_new_tokens for one in batch]
        self._first = True
        self._arrived, self._waiting = -1, 0
        self._done: tuple[bool, ...] = ()
        self._answer: Any = None
        self._device = task.prompt.ids.device
        self._origin_s = self._begin_s = log.now_s()
        self._origin = self.event() if self._device.type == "cuda" else None
        log.ahead = 0  # what an earlier batch launched and nobody waited for

    def __call__(self, input_ids: torch.Tensor, scores: Any, **kwargs: Any) -> torch.Tensor:
        """Shapes: input_ids (B, length so far); returns (B,) bool, True = finished.

        Reading the ids waits for the device, as `generate` itself does after each step.
        """
        self._note(input_ids[:, -1].tolist(), self._log.now_s())
        ended = self.stopping()
        done = (*(ended or left <= 0 for left in self._left), *[True] * self._empty)
        if done != self._done:  # a copy to the device waits for it
            self._done, self._answer = done, torch.tensor(done, device=self._device)
        return self._answer

    # --- as the custom decode loop tells it: see `loop.TokenMeter` ------------------------------------

    def event(self) -> Any:
        """Now, on the device's clock: a step was launched."""
        self._log.ahead += 1
        if self._device.type != "cuda":
            return self._log.now_s()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def tell(self, event: Any, ids: list[int]) -> None:
        """These tokens, one a row, existed at `event`."""
        at_s = event if self._origin is None else self._origin_s + self._origin.elapsed_time(event) / 1e3
        self._log.ahead -= 1
        self._note(ids, at_s)

    def stopping(self) -> bool:
        """Whether to stop after the step told last."""
        return bool(self._stop()) or all(left <= 0 for left in self._left)

    # --- the log --------------------------------------------------------------------------------------

    def _note(self, made: list[int], now_s: float) -> None:
        """A step that gave these tokens, one a row, has ended."""
        parts, ends = [], []
        for row, one in enumerate(self._batch):
            if self._left[row] <= 0:
                parts.append(Part(one.number, IDLE, 1))
                continue
            token, self._left[row] = made[row], self._left[row] - 1
            kind, tokens = (PREFILL, len(one.ids)) if self._first else (DECODE, 1)
            parts.append(Part(one.number, kind, tokens, token))
            if token in self._eos:
                self._left[row] = 0
            if self._left[row] <= 0:
                ends.append((one.number, "eos" if token in self._eos else "length"))
        parts += [Part(-1, IDLE, 1)] * self._empty
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
