"""What static and continuous batching share: the course of a run of many requests."""

import time
from abc import abstractmethod
from typing import Any

import torch

from tokendyno.backend.counts import Passes, Requests, RunCounts
from tokendyno.backend.evidence import Finding
from tokendyno.backend.messages import Generate, Started
from tokendyno.backend.predict.lengths import cache_places
from tokendyno.backend.worker.measure.annotations import Annotations
from tokendyno.backend.worker.measure.memory import Sampler
from tokendyno.backend.worker.measure.steps import StepLog, StepStreamer
from tokendyno.backend.worker.prompt.prompt import Asked, read_requests
from tokendyno.backend.worker.prove.prompt_lookup import DraftCounter
from tokendyno.backend.worker.prove.tokens import Text, find_tokens
from tokendyno.backend.worker.runners.base import Measured, Outcome, Task
from tokendyno.backend.worker.runners.decode import GenerateRunner

LOOK_EVERY_S = 0.02
"""While nothing has arrived: how soon a cancel is noticed."""


class BatchCourse(GenerateRunner):
    """Reads the requests, warms up in the shapes of the first ones, serves all of them, and verifies what was in
    effect."""

    equal_steps = False
    _asked: list[Asked] = []

    # --- what a kind of batching decides ----------------------------------------------------------

    @abstractmethod
    def _first_task(self, job: Generate, asked: list[Asked]) -> Task:
        """The work of the first steps, in whose shapes is warmed up and profiled."""

    @abstractmethod
    def _serve(self, task: Task, log: StepLog) -> None:
        """Work through all requests; returns early when cancelled."""

    @abstractmethod
    def _batch_counts(self, log: StepLog) -> RunCounts:
        """Counts of its own."""

    def _begin_serving(self, task: Task, log: StepLog) -> list[str]:
        """Get ready for the measured run, outside of it; returns notes for the user."""
        return []

    def _cache_of(self) -> Any:
        """The KV cache that the last steps filled, as the proofs know caches; None where it is in pages."""
        return None

    def _end_serving(self) -> None:
        """Free what only the measured run needed."""

    # --- the course -------------------------------------------------------------------------------

    def run(self, job: Generate) -> None:
        assert job.traffic is not None
        self._kept = None
        self._asked = asked = read_requests(self.model, job.traffic.requests, job.most_prompt_tokens)
        task = self._first_task(job, asked)
        notes = [*([self.model.remark] if self.model.remark else []), *task.prompt.notes, *self._make_ready(task)]
        torch.manual_seed(job.seed)
        log = StepLog([one.arrival_s for one in asked])
        sampler = Sampler(self._memory)
        notes += self._begin_serving(task, log)
        try:
            self._perform(job, task, log, sampler, notes)
        finally:
            self._end_serving()

    def _perform(self, job: Generate, task: Task, log: StepLog, sampler: Sampler, notes: list[str]) -> None:
        longest = max(len(one.ids) for one in self._asked)
        output = max(one.max_new_tokens for one in self._asked)
        places = cache_places(job.plan.generate.shapes, longest, output)  # no batch needs more
        self.channel.send(Started(longest, job.batch_size, output, notes, places))
        annotations = Annotations(lambda: len(log.rows), None, self._cuda)
        streamer = StepStreamer(log, sampler, self.model.tokenizer, self.channel, annotations)
        self._graph_calls.begin(lambda: log.launched)
        self._best.forget()
        with self.channel.phasing("run"), DraftCounter() as drafts, self._graph_calls:
            measured = Measured(task, None, log, sampler, streamer, drafts)  # type: ignore[arg-type]
            with self._watched(measured, annotations):
                self._serve(task, log)
                measured.cache = self._cache_of()
                for request in log.unfinished if self.cancelled.is_set() else ():
                    log.end(request, log.now_s(), "cancelled")
        self._end_serving()  # the proofs look at the model as it was loaded
        self._conclude(measured)

    def _sleep_until(self, log: StepLog, arrival_s: float) -> None:
        """Wait for the next request, or for a cancel."""
        while not self.cancelled.is_set() and (left_s := arrival_s - log.now_s()) > 0:
            time.sleep(min(left_s, LOOK_EVERY_S))

    # --- what came of it --------------------------------------------------------------------------

    def _outcome(self, measured: Measured) -> Outcome:
        log: Any = measured.meter
        first = [row.end_s for row in log.rows if any(part.made >= 0 for part in row.parts)][:1]
        reason = "cancelled" if self.cancelled.is_set() else "length"
        return Outcome(reason, "", first[0] if first else 0.0)  # type: ignore[arg-type]

    def _positions(self, measured: Measured) -> int:
        return measured.task.prompt.tokens

    def _counted_steps(self, measured: Measured) -> list[int]:
        log: Any = measured.meter
        prompts = log.prompt_steps()
        return [step for step in range(log.launched) if step not in prompts]

    def _tokens(self, measured: Measured) -> Finding:
        """Of the first request and of the one with most tokens, as far as one pass takes them."""
        job, log = measured.task.job, measured.meter
        every = [Text(one.ids, log.ids[one.number]) for one in self._asked]
        longest = max((text for text in every if text.fits), key=lambda text: len(text.generated), default=every[0])
        some = [every[0]] if longest == every[0] else [every[0], longest]
        return find_tokens(self.model.model, job.plan, job.temperature > 0, some)

    def _own_counts(self, measured: Measured) -> RunCounts:
        log: Any = measured.meter
        requests = Requests(
            batch_requests=len(self._asked),
            batch_steps=len(log.rows),
            slot_steps=len(log.rows) * measured.task.job.batch_size,
            fullest_step=max((len(row.parts) for row in log.rows), default=0),
            useful_tokens=log.useful_tokens(),
            padding_tokens=sum(row.padding for row in log.rows),
        )
        counts = RunCounts(requests=requests, passes=Passes(passes=len(log.rows)))
        counts.update(self._batch_counts(log))
        return counts
