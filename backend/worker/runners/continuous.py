"""Continuous batching: transformers' own, driven step by step, so that each step and its reasons can be read."""

import gc
import math
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import torch
from transformers import ContinuousBatchingConfig, GenerationConfig

from tokendyno.backend.counts import WarmUp
from tokendyno.backend.errors import InputError
from tokendyno.backend.messages import Generate, PageGroup, PagesAllocated
from tokendyno.backend.plan import CACHE_SIZES, BatchPlan
from tokendyno.backend.predict.pages import pages_needed, pages_of
from tokendyno.backend.worker.load.loader import LoadedModel
from tokendyno.backend.worker.measure.finite import watch_pages
from tokendyno.backend.worker.measure.steps import StepLog
from tokendyno.backend.worker.prompt import Prompt, TokenizedRequest
from tokendyno.backend.worker.prove.profile import mark_step
from tokendyno.backend.worker.runners.batch import Batches, most_of
from tokendyno.backend.worker.runners.generation import Measured, Session, Task
from tokendyno.backend.worker.runners.paged_watch import PagedWatch

WARM_REQUESTS, WARM_TOKENS = 2, 8


class ContinuousBatches(Batches):
    """A `Generation` that itself makes the calls of the manager's thread (its `_generation_loop_body`): errors have
    their cause, a cancel takes effect after the step, and nothing is read while it changes."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._watch: PagedWatch  # of the run under way

    def prepare(self, job: Generate) -> Task:
        notes = self._read(job)
        ids = torch.tensor([self._requests[0].ids], device=self._session.model.model.device)
        prompt = Prompt(ids, torch.ones_like(ids), notes)
        return Task(job, prompt, 0, (job.plan.generate, job.batch_size), most_of(job, self._requests))

    def cache(self, task: Task) -> None:
        """None: it is in pages, which come and go with a manager."""

    # --- unmeasured -------------------------------------------------------------------------------

    def warm_up(self, task: Task) -> WarmUp:
        with self._session.channel.phasing("warmup"):
            return WarmUp(warmup_steps=self._serve_few(task, WARM_TOKENS))

    def repeat(self, task: Task, steps: int) -> int:
        return self._serve_few(task, min(steps, task.job.max_new_tokens))

    def _serve_few(self, task: Task, tokens: int) -> int:
        """Serve a few of the requests for so many tokens each, in the same way; returns the steps."""
        first = [request._replace(max_new_tokens=tokens) for request in self._requests[:WARM_REQUESTS]]
        with self._open(task.job) as watch:
            return self._serve_at_once(watch, first, ignore_eos=True)

    def _serve_at_once(self, watch: PagedWatch, requests: Sequence[TokenizedRequest], ignore_eos: bool) -> int:
        log = StepLog([0.0 for _ in self._requests])
        log.start()
        watch.restart(log)
        self._drive(watch, [request._replace(arrival_s=0.0) for request in requests], ignore_eos)
        return len(log.rows)

    @contextmanager
    def _open(self, job: Generate) -> Iterator[PagedWatch]:
        """A manager with its cache and first graphs, watched from before they are captured."""
        plan, pages = job.plan.generate.batch, self._pages(job)
        manager = new_manager(self._session.model, plan, pages, job.batch_size, job.seed)
        try:
            manager.batch_processor = manager._create_batch_processor()
            with closing(PagedWatch(manager)) as watch:
                watch_pages(manager.batch_processor, self._session.best)
                manager.warmup()
                yield watch
        finally:
            close_manager(self._session.model, manager)

    def _pages(self, job: Generate) -> int:
        plan, traffic = job.plan.generate.batch, job.traffic
        assert traffic is not None
        lengths = sorted((len(request.ids) + request.max_new_tokens for request in self._requests), reverse=True)
        lengths = lengths[: traffic.concurrent]
        pages = pages_of(traffic, plan.page_tokens) if traffic.exact else pages_needed(lengths, plan.page_tokens)
        pages = traffic.pages or pages
        needed = math.ceil(lengths[0] / plan.page_tokens)
        if needed > pages:  # of a text, whose tokens were not known before
            raise InputError(
                f"The longest request needs {needed:,} pages of {plan.page_tokens} tokens, but there are only "
                f"{pages:,}. Use at least {needed:,} pages (--pages)."
            )
        return pages

    # --- serving ----------------------------------------------------------------------------------

    @contextmanager
    def around(self, task: Task, meter: StepLog) -> Iterator[None]:
        with self._open(task.job) as watch:
            if task.job.plan.generate.batch.graphs:
                with self._session.channel.phasing("compile", "capturing CUDA graphs of steps"):
                    self._serve_at_once(watch, self._requests, task.job.ignore_eos)  # in all their sizes
            watch.restart(meter)
            self._session.channel.send(_allocated(watch.manager.batch_processor.cache))
            self._watch = watch
            yield

    def generate(self, run: Measured) -> None:
        self._drive(self._watch, self._requests, run.task.job.ignore_eos)
        page_tokens = run.task.job.plan.generate.batch.page_tokens
        cached = [len(self._requests[i].ids) + len(ids) - 1 for i, ids in enumerate(run.meter.ids) if ids]
        run.counts.pages = self._watch.counts(sum(math.ceil(tokens / page_tokens) for tokens in cached))
        self._end_cancelled(run.meter)

    def _drive(self, watch: PagedWatch, requests: Sequence[TokenizedRequest], ignore_eos: bool) -> None:
        manager, log, pending = watch.manager, watch.log, deque(requests)
        processor, eos = manager.batch_processor, [] if ignore_eos else self._session.model.eos
        in_flight = 0
        with torch.no_grad():
            while not self._session.cancelled.is_set():
                now_s = log.now_s()
                while pending and pending[0].arrival_s <= now_s:
                    request = pending.popleft()
                    manager.add_request(request.ids, str(request.number), request.max_new_tokens, eos_token_id=eos)
                log.arrived(now_s)
                watch.begin()
                if processor.prepare_next_batch():
                    watch.prepared()
                    manager._generation_step()
                    in_flight += 1
                    if in_flight > int(processor.use_async_batching):  # then one is read when the next is under way
                        processor.update_batch()
                        mark_step()
                        in_flight -= 1
                elif not processor.has_pending_requests():
                    if not pending:
                        break
                    self._await(log, pending[0])
            if in_flight:
                read_last(processor)


def _allocated(cache: Any) -> PagesAllocated:
    """The pages of a cache, and its bytes beyond them."""
    groups = [
        PageGroup(name, len(pool.layer_indices), pool.tokens_per_page, pool.bytes_per_block, pool.num_blocks)
        for name, pool in cache.cache_allocators.items()
    ]
    used_bytes = cache.num_sectors * cache.bytes_per_sector
    return PagesAllocated(groups, used_bytes, int(cache.cache_tensor.nbytes) - used_bytes)


def read_last(processor: Any) -> None:
    """Read the last step of a pair, as the manager's own thread ends."""
    processor.inputs_and_outputs.current_pair = 1 - processor.inputs_and_outputs.current_pair
    processor.update_batch()


def new_manager(model: LoadedModel, plan: BatchPlan, pages: int, rows: int, seed: int) -> Any:
    """A manager for so many requests at once, without its cache yet. Each request brings its length and its EOS."""
    settings = GenerationConfig(do_sample=False, eos_token_id=-1, pad_token_id=model.pad)
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
    """Free the pages and the graphs, and give the model its own attention back."""
    manager.batch_processor = None
    if manager._original_attn_impl is not None:
        model.model.set_attn_implementation(manager._original_attn_impl)
    manager.destroy()
    gc.collect()  # its parts refer to each other: a graph destroyed during a later capture ends the process
    if torch.cuda.is_initialized():
        torch._C._cuda_clearCublasWorkspaces()  # 32 MiB of the stream that this manager alone used
