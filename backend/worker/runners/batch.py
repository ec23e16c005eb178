"""What static and continuous batching share: the requests of a run, how they are waited for, and what came of them."""

from collections.abc import Sequence
from typing import Any

from tokendyno.backend import counts
from tokendyno.backend.evidence import Finding
from tokendyno.backend.messages import PREFILL, Generate
from tokendyno.backend.predict.lengths import cache_places
from tokendyno.backend.worker.measure.memory import Sampler
from tokendyno.backend.worker.measure.steps import StepLog
from tokendyno.backend.worker.prompt import TokenizedRequest, padding_counts, read_requests
from tokendyno.backend.worker.prove.tokens import Text, find_tokens
from tokendyno.backend.worker.runners.generation import Measured, Outcome, Session, Task


class Batches:
    """What both kinds of `Generation` in batches share."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def _read(self, job: Generate) -> list[str]:
        """Read the requests of a run; returns remarks for the user. InputError names the first that does not fit."""
        assert job.traffic is not None
        model = self._session.model
        self._requests = read_requests(model, job.traffic.requests, job.most_prompt_tokens)
        return [model.remark] if model.remark else []

    def meter(self, task: Task, cache: Any, sampler: Sampler) -> StepLog:
        return StepLog([request.arrival_s for request in self._requests])

    def _await(self, log: StepLog, request: TokenizedRequest) -> None:
        """Wait until it arrives, or the run is cancelled."""
        self._session.cancelled.wait(request.arrival_s - log.now_s())

    def _end_cancelled(self, log: StepLog) -> None:
        """Those that have not ended when a run is cancelled end with it."""
        for request in self._requests if self._session.cancelled.is_set() else ():
            log.end(request.number, log.now_s(), "cancelled")

    def outcome(self, run: Measured) -> Outcome:
        """What both kinds of batching count. An optimization of steps should reach those in which no prompt is read."""
        log: StepLog = run.meter
        prompts = {i for i, row in enumerate(log.rows) if any(part.kind == PREFILL for part in row.parts)}
        requests = counts.Requests(
            batch_requests=len(self._requests),
            batch_steps=len(log.rows),
            slot_steps=len(log.rows) * run.task.job.batch_size,
            fullest_step=max((len(row.parts) for row in log.rows), default=0),
            useful_tokens=sum(map(len, log.ids)),
            padding_tokens=sum(row.padding for row in log.rows),
        )
        counted = counts.RunCounts(requests=requests, passes=counts.Passes(passes=len(log.rows)))
        counted.prompt = padding_counts(run.task.prompt, run.task.prompt.tokens)
        ttft_s = next((row.end_s for row in log.rows if any(part.made >= 0 for part in row.parts)), 0.0)
        return Outcome("", ttft_s, [step for step in range(log.launched) if step not in prompts], counted)

    def tokens(self, run: Measured) -> Finding:
        """Checks the first request, and of those that one pass can take the one with the most tokens."""
        job = run.task.job
        texts = [Text(request.ids, run.meter.ids[request.number]) for request in self._requests]
        longest = max((text for text in texts if text.fits), key=lambda text: len(text.generated), default=texts[0])
        checked = [texts[0]] if longest == texts[0] else [texts[0], longest]
        return find_tokens(self._session.model.model, job.plan, job.temperature > 0, checked)


def most_of(job: Generate, requests: Sequence[TokenizedRequest]) -> tuple[int, int, int]:
    """The longest prompt, the most new tokens, and places of a cache for both: no batch needs more."""
    longest = max(len(request.ids) for request in requests)
    output = max(request.max_new_tokens for request in requests)
    return longest, output, cache_places(job.plan.generate.shapes, longest, output)
