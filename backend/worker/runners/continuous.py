"""Continuous batching: transformers' own, driven step by step, so that each step and its reasons can be read."""

from collections import deque
from typing import Any

import torch
from transformers import ContinuousBatchingConfig, GenerationConfig

from tokendyno.backend.counts import RunCounts, WarmUp
from tokendyno.backend.errors import InputError
from tokendyno.backend.messages import Generate, PageGroup, PagesAllocated
from tokendyno.backend.plan import CACHE_SIZES, BatchPlan
from tokendyno.backend.predict.pages import pages_needed, pages_of
from tokendyno.backend.worker.load.loader import LoadedModel
from tokendyno.backend.worker.measure.finite import watch_pages
from tokendyno.backend.worker.measure.steps import StepLog
from tokendyno.backend.worker.prompt.prompt import Asked, Prompt
from tokendyno.backend.worker.prove.profile import mark_step
from tokendyno.backend.worker.runners.base import Task
from tokendyno.backend.worker.runners.batch import BatchCourse
from tokendyno.backend.worker.runners.paged_watch import PagedWatch

WARM_REQUESTS = 2
MOST_IDLE_STEPS = 1_000
"""Steps in a row that schedule nothing while requests wait: the scheduler is stuck."""


class ContinuousRunner(BatchCourse):
    """Drives the manager's batch processor from this thread: admit what has arrived, prepare a step, run it, update.

    These are the calls that the manager's own thread makes (`ContinuousBatchingManager._generation_loop_body`), so an
    error reaches us with its cause, a cancel takes effect after the step, and nothing is read while it changes.
    """

    _manager: Any = None
    _watch: PagedWatch | None = None
    _page_tokens = 0  # as planned

    def _first_task(self, job: Generate, asked: list[Asked]) -> Task:
        first = asked[0]
        ids = torch.tensor([first.ids], device=self.model.model.device)
        return Task(job, Prompt(ids, torch.ones_like(ids)), 0)

    def _shape(self, task: Task) -> Any:
        return task.job.plan.generate, task.job.batch_size

    def _perform_warm_up(self, task: Task) -> WarmUp:
        with self.channel.phasing("warmup") as steps:
            done = self._serve_unmeasured(task, 8)
            steps.step(1.0)
        return WarmUp(warmup_steps=done)

    def _repeat(self, task: Task, steps: int) -> int:
        return self._serve_unmeasured(task, steps)

    def _serve_unmeasured(self, task: Task, tokens: int) -> int:
        """Serve a few of the requests for so many tokens each, in the same way; returns the steps."""
        some = [one._replace(arrival_s=0.0, max_new_tokens=tokens) for one in self._asked[:WARM_REQUESTS]]
        log = StepLog([0.0 for _ in self._asked])
        manager, watch = self._new_manager(task.job, log)
        try:
            log.start()
            watch.restart(log)
            self._drive(manager, watch, some, log, True)
            return len(log.rows)
        finally:
            close_manager(self.model, manager)

    # --- the manager ------------------------------------------------------------------------------

    def _new_manager(self, job: Generate, log: StepLog) -> tuple[Any, PagedWatch]:
        """A manager with its cache and first graphs, watched from before they are captured."""
        plan, traffic = job.plan.generate.batch, job.traffic
        assert traffic is not None
        longest = sorted((len(one.ids) + one.max_new_tokens for one in self._asked), reverse=True)
        lengths = longest[: traffic.concurrent]
        pages = pages_of(traffic, plan.page_tokens) if traffic.exact else pages_needed(lengths, plan.page_tokens)
        pages = traffic.pages or pages
        most = -(-lengths[0] // plan.page_tokens)
        if most > pages:  # of a text, whose tokens were not known before
            raise InputError(
                f"The longest request needs {most:,} pages of {plan.page_tokens} tokens, but there are only {pages:,}. "
                f"Use at least {most:,} pages (--pages)."
            )
        settings = GenerationConfig(
            do_sample=False,
            eos_token_id=-1 if job.ignore_eos else (self.model.eos or -1),
            pad_token_id=self.model.pad,
            max_new_tokens=job.max_new_tokens,
        )
        manager = new_manager(self.model, plan, pages, job.batch_size, settings, job.seed)
        try:
            manager.batch_processor = manager._create_batch_processor()
            watch = PagedWatch(manager.batch_processor, log)
            watch_pages(manager.batch_processor, self._best)
            manager.warmup()
        except BaseException:
            close_manager(self.model, manager)
            raise
        return manager, watch

    # --- serving ----------------------------------------------------------------------------------

    def _begin_serving(self, task: Task, log: StepLog) -> list[str]:
        self._manager, self._watch = self._new_manager(task.job, log)
        self._watch.restart(log)
        self._page_tokens = task.job.plan.generate.batch.page_tokens
        cache = self._manager.batch_processor.cache
        if task.job.plan.generate.batch.graphs:
            self._rehearse(task.job, log)
        groups = [
            PageGroup(name, len(one.layer_indices), one.tokens_per_page, one.bytes_per_block, one.num_blocks)
            for name, one in cache.cache_allocators.items()
        ]
        spare = int(cache.cache_tensor.nbytes) - cache.num_sectors * cache.bytes_per_sector
        self.channel.send(PagesAllocated(groups, cache.num_sectors * cache.bytes_per_sector, spare))
        return []

    def _rehearse(self, job: Generate, log: StepLog) -> None:
        """Serve the requests once, unmeasured, so that the graphs of all sizes that they come to are captured."""
        assert self._watch is not None
        with self.channel.phasing("compile", "capturing CUDA graphs of steps"):
            unread = StepLog([0.0 for _ in self._asked])
            unread.start()
            self._watch.restart(unread)
            at_once = [one._replace(arrival_s=0.0) for one in self._asked]
            self._drive(self._manager, self._watch, at_once, unread, job.ignore_eos)
            self._watch.restart(log)

    def _end_serving(self) -> None:
        if self._manager is not None:
            close_manager(self.model, self._manager)
        self._manager = None

    def _serve(self, task: Task, log: StepLog) -> None:
        assert self._watch is not None
        self._drive(self._manager, self._watch, self._asked, log, task.job.ignore_eos)

    def _drive(self, manager: Any, watch: PagedWatch, asked: list[Asked], log: StepLog, ignore_eos: bool) -> None:
        """Serve these requests to their ends, or until cancelled."""
        processor, pending = manager.batch_processor, deque(asked)
        eos = -1 if ignore_eos else (self.model.eos or -1)
        overlapping, stuck = processor.use_async_batching, 0
        with torch.no_grad():
            while not self.cancelled.is_set():
                now_s = log.now_s()
                while pending and pending[0].arrival_s <= now_s:
                    one = pending.popleft()
                    manager.add_request(one.ids, str(one.number), one.max_new_tokens, eos_token_id=eos)
                log.arrived(now_s)
                watch.begin()
                if processor.prepare_next_batch():
                    watch.prepared()
                    manager._generation_step()
                    if overlapping:  # the first step of a pair is read when the second is under way
                        overlapping = False
                        continue
                    processor.update_batch()
                    mark_step()
                    stuck = 0
                elif processor.has_pending_requests():
                    stuck += 1
                    if stuck > MOST_IDLE_STEPS:
                        raise RuntimeError("The scheduler schedules nothing although requests wait")
                elif pending:
                    self._sleep_until(log, pending[0].arrival_s)
                else:
                    break
            if watch.under_way:  # as the manager's own thread ends: the last step of a pair is still unread
                processor.inputs_and_outputs.current_pair = 1 - processor.inputs_and_outputs.current_pair
                processor.update_batch()
        watch.finish()

    def _batch_counts(self, log: StepLog) -> RunCounts:
        assert self._watch is not None
        lengths = [len(self._asked[i].ids) + len(ids) - 1 for i, ids in enumerate(log.ids) if ids]  # all but the last
        return RunCounts(pages=self._watch.counts(sum(-(-length // self._page_tokens) for length in lengths)))


def new_manager(
    model: LoadedModel, plan: BatchPlan, pages: int, rows: int, settings: GenerationConfig, seed: int
) -> Any:
    """A manager for so many requests at once, without its cache yet."""
    config = ContinuousBatchingConfig(
        page_size=plan.page_tokens,
        num_blocks=pages,
        max_batch_tokens=max(plan.step_tokens, rows),
        max_requests_per_batch=rows,
        scheduler_type=plan.scheduler,
        use_async_batching=plan.asynchronous,
        use_cuda_graph=plan.graphs,
        kv_padding_interval_size=-(-pages * plan.page_tokens // CACHE_SIZES) if plan.graphs else 0,
        allow_block_sharing=False,
        auto_switch_to_flash=False,
        seed=seed,
    )
    return model.model.init_continuous_batching(generation_config=settings, continuous_batching_config=config)


def close_manager(model: LoadedModel, manager: Any) -> None:
    """Free the pages and give the model its own attention back."""
    manager.batch_processor = None
    if manager._original_attn_impl is not None:
        model.model.set_attn_implementation(manager._original_attn_impl)
        manager._original_attn_impl = None
    manager.destroy()
