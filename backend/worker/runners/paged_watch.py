"""Reads transformers' continuous batching from inside: who was in a step, who waits and why, who holds which page."""

from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

from tokendyno.backend.counts import Pages
from tokendyno.backend.messages import DECODE, NO_TOKEN, PREFILL, EndReason, WaitReason
from tokendyno.backend.worker.measure.steps import Part, StepLog, StepRow


class PagedWatch:
    """Wraps methods of a manager's batch processor, scheduler and cache; none is changed in what it does. `log` gets
    steps, waits, pages and ends."""

    def __init__(self, manager: Any) -> None:
        self.manager, processor = manager, manager.batch_processor
        self._processor, self._scheduler, self._cache = processor, processor.scheduler, processor.cache
        allocators = self._cache.cache_allocators
        reserved = self._cache.pool.num_reserved_sectors
        self._tables = [allocator.block_table for allocator in allocators.values()]
        self._reserved = [reserved * allocator.blocks_per_sector for allocator in allocators.values()]
        kinds = list(allocators)
        # the group whose pages are counted: windows hold fewer
        self._full_group = kinds.index("full_attention") if "full_attention" in kinds else -1
        self._captured: dict[int, int] = {}  # id of a graph -> layers that wrote into pages in it
        self._calls_now: set[int] = set()
        self.restart(StepLog([]))
        self._wrap()

    def restart(self, log: StepLog) -> None:
        """Begin to count anew, into this log. Nothing is under way."""
        self.log = log
        self._pages_known: list[dict[str, list[int]]] = [{} for _ in self._tables]
        self._begins: deque[tuple[float, int, int]] = deque()
        self._begin_s = 0.0
        self._refused: set[str] = set()
        self._last_reasons: Any = None  # what the reasons for waiting were derived from
        self._in_margin = True
        self._prompts_begun: set[int] = set()  # requests of whose prompts a part was processed
        self._prepared = self._pages_taken = 0
        self._counted: Counter[str] = Counter()  # by the names of `Pages`

    def close(self) -> None:
        """Let go of what was watched, so that its pages and graphs can be freed."""
        self.manager = self._processor = self._scheduler = self._cache = None
        self._tables.clear()

    def _wrap(self) -> None:
        scheduler, cache, runner = self._scheduler, self._cache, self._processor.model_runner
        margin, store = scheduler._try_to_meet_safety_margin, cache.can_store_request_tokens
        compute, read = runner.compute_batch, self._processor.inputs_and_outputs.prepare_batch_update

        def met_margin() -> bool:
            self._in_margin = bool(margin())
            return self._in_margin

        def can_store(state: Any, request_len: int, dry_run: bool = False) -> bool:
            fits = bool(store(state, request_len, dry_run))
            if not fits:
                self._refused.add(state.request_id)
            return fits

        def computing(*args: Any, **kwargs: Any) -> Any:
            self._calls_now.clear()
            result = compute(*args, **kwargs)
            self._note_layers()
            return result

        def reading() -> Any:
            result = read()
            self._note_step(result[0], result[1])
            return result

        scheduler._try_to_meet_safety_margin = met_margin
        cache.can_store_request_tokens = can_store
        for allocator in cache.cache_allocators.values():
            for name, at in (("update", 2), ("get_cache_for_block_table", 0)):  # writes, and what a kernel writes to
                setattr(allocator, name, self._noting_layer(getattr(allocator, name), at))
        runner.compute_batch = computing
        self._processor.inputs_and_outputs.prepare_batch_update = reading

    def _noting_layer(self, original: Any, at: int) -> Any:
        def noting(*args: Any, **kwargs: Any) -> Any:
            self._calls_now.add(int(kwargs["layer_idx"] if "layer_idx" in kwargs else args[at]))
            return original(*args, **kwargs)

        return noting

    def _note_layers(self) -> None:
        """Layers that wrote their keys and values into pages in this step; of a replayed graph, those it captured."""
        layers, io = len(self._calls_now), self._processor.inputs_and_outputs
        runner = self._processor.model_runner
        if runner.use_cuda_graph_varlen or runner.use_cuda_graph_decode:
            graph = io.get_graph()
            if graph is not None and layers:
                self._captured[id(graph)] = layers
                self._counted["paged_captures"] += 1
            elif graph is not None:
                layers = self._captured.get(id(graph), 0)
                self._counted["paged_replays"] += 1
        self._counted["paged_layer_calls"] += layers

    # --- around a step ----------------------------------------------------------------------------

    def begin(self) -> None:
        """A step is about to be prepared."""
        self._begin_s = self.log.now_s()
        self._refused.clear()

    def prepared(self) -> None:
        """The scheduler has chosen who takes part, and pages were taken."""
        self._prepared += 1
        log, step = self.log, self._prepared - 1
        self._note_pages(step)
        io = self._processor.inputs_and_outputs
        chosen = getattr(io, "requests_in_batch", None)
        if chosen is None:  # two pairs of buffers
            chosen = io.io_pairs[io.current_pair].host_io.requests_in_batch
        log.enter([int(future.state.request_id) for future in chosen])
        waiting = self._scheduler.waiting_requests
        self._note_waiting(waiting, len(chosen), sum(future.query_length for future in chosen))
        self._begins.append((self._begin_s, len(waiting), int(self._cache.compute_free_capacity(relative=False))))
        self._counted["overlapped_steps"] += len(self._begins) > 1

    def _note_waiting(self, waiting: Mapping[str, Any], chosen: int, used: int) -> None:
        """Why the scheduler left requests waiting, in the order in which it asks."""
        scheduler = self._scheduler
        reason: WaitReason = "reads" if self._in_margin else "margin"  # nothing else is missing
        if scheduler.block_new_requests:
            reason = "pages"
        elif chosen >= scheduler.max_requests_per_batch:
            reason = "requests"
        elif used >= self._processor.max_batch_tokens:
            reason = "tokens"
        reasons = (reason, frozenset(self._refused), self.log.arrived(self._begin_s), self._counted["restarts"])
        if reasons == self._last_reasons:
            return
        self._last_reasons = reasons
        for request_id in waiting:
            self.log.wait(self._begin_s, int(request_id), "pages" if request_id in self._refused else reason)

    def _note_step(self, futures: list[Any], made: list[int]) -> None:
        """The tokens of a step are known: it has ended."""
        log, now_s, parts, at = self.log, self.log.now_s(), [], 0
        ends: list[tuple[int, EndReason]] = []
        for future in futures:
            state, token = future.state, NO_TOKEN
            number = int(state.request_id)
            tokens = state.generated_tokens
            kind = DECODE if tokens else PREFILL  # one that lost its pages begins again, with what it had generated
            if future.has_new_token:
                token, at = made[at], at + 1
                if state.status.name in ("FINISHED", "PENDING"):  # decided while this step was under way
                    continue
                self._counted["paged_tokens"] += 1
                if token in state._eos_token_ids:
                    ends.append((number, "eos"))
                elif len(tokens) + 1 >= state._new_tokens_limit:
                    ends.append((number, "length"))
            parts.append(Part(number, kind, future.query_length, token))
        self._counted["paged_steps"] += 1
        self._note_width(parts)
        begin_s, waiting, free = self._begins.popleft()
        log.add(StepRow(begin_s, now_s, parts, 0, waiting, free))
        for number, reason in ends:
            log.end(number, now_s, reason)

    def _note_width(self, parts: list[Part]) -> None:
        """How full the step was, and who came first in it."""
        width = sum(part.tokens for part in parts)
        self._counted["widest_step_tokens"] = max(self._counted["widest_step_tokens"], width)
        self._counted["full_steps"] += width == self._processor.max_batch_tokens
        going_on = [at for at, part in enumerate(parts) if part.kind == PREFILL and part.request in self._prompts_begun]
        decoding = [at for at, part in enumerate(parts) if part.kind == DECODE]
        if going_on and decoding:
            self._counted["contended_steps"] += 1
            self._counted["prefill_first_steps"] += going_on[0] < decoding[0]
        self._prompts_begun |= {part.request for part in parts if part.kind == PREFILL}

    def _note_pages(self, step: int) -> None:
        """Pages that changed hands since the step before. A request's table only grows until it is given back."""
        for group, (table, pages_held) in enumerate(zip(self._tables, self._pages_known, strict=True)):
            for request_id in [request_id for request_id in pages_held if request_id not in table]:
                self._counted["restarts"] += group == 0 and int(request_id) not in self.log.ended
                self._move(step, group, pages_held.pop(request_id), -1)
            for request_id, pages in table.items():
                earlier = pages_held.setdefault(request_id, [])
                if len(pages) > len(earlier):
                    new = pages[len(earlier) :]
                    earlier += new
                    self._pages_taken += len(new) if group == self._full_group else 0
                    self._move(step, group, new, int(request_id))

    def _move(self, step: int, group: int, pages: list[int], request: int) -> None:
        first = self._reserved[group]
        self.log.moves += [(step, group, page - first, request) for page in pages]

    def counts(self, needed: int) -> Pages:
        """After the last step: what was counted in all of them, beside the pages that the texts need."""
        self._note_pages(self._prepared)
        cache = self._cache
        return Pages(
            **self._counted,
            paged_bytes=cache.num_sectors * cache.bytes_per_sector,
            page_tokens=max(allocator.tokens_per_page for allocator in cache.cache_allocators.values()),
            pages_taken=self._pages_taken if self._full_group >= 0 else None,
            pages_needed=needed,
        )
