"""The custom decode loop: one step on tensors that never move, run eagerly, compiled, or as a captured CUDA graph.

The host launches a few steps before it reads their tokens: what they generate after an EOS is dropped.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.profiler import record_function

from tokendyno.backend.optimizations.axes.loop import LOOP_NAME
from tokendyno.backend.worker.loop.cache import StaticSlotCache
from tokendyno.backend.worker.loop.cuda_graph import HostCopy, capture
from tokendyno.backend.worker.loop.sampling import Sampling
from tokendyno.backend.worker.loop.step import Step

STEPS_AHEAD = 3  # at most; a cancel or an EOS may waste as many
GREEDY = Sampling()


class TokenMeter(Protocol):
    """Watches the tokens of one generation."""

    def event(self) -> Any:
        """A timestamp or a CUDA event, right after a step was launched."""

    def tell(self, event: Any, ids: list[int]) -> None:
        """The tokens of the step before `event`, one for each row. Only tokens that count are told."""

    def stopping(self) -> bool:
        """Whether to stop after the last token told."""


@dataclass(eq=False)
class DecodeLoop:
    """The loop of one model. Keeps its last step, compiled and captured, for the next run of the same kind.

    pad, eos          the id of padding; the ids that end a text
    prefill_chunk     tokens of the prompt in one pass; 0: all of them
    prefill_graphs    with `cuda_graph`, capture the pass over the prompt too, once for each length
    prefill_compiled  with a `compile_mode`, compile it too, for each length
    """

    model: Any
    pad: int
    eos: list[int]
    compile_mode: str | None = None
    cuda_graph: bool = False
    prefill_chunk: int = 0
    prefill_graphs: bool = False
    prefill_compiled: bool = False

    def __post_init__(self) -> None:
        self._key: Any = None
        self._step: Step | None = None
        self._generated = self.steps = self.captures = 0

    def generate(
        self,
        input_ids: Any,
        attention_mask: Any,
        cache: StaticSlotCache,
        max_new_tokens: int,
        meter: TokenMeter,
        sampling: Sampling = GREEDY,
        seed: int = 0,
        ignore_eos: bool = False,
        given: list[int] | None = None,
        replay: bool = True,
        likely: int = 0,
    ) -> Any:
        """Ids of the prompt (B, P) followed by the new tokens: (B, P + generated).

        given   of a batch of one: the new tokens, whatever the model would choose; see `given_logits`
        replay  whether this prompt is worth a compiled or captured pass, where prompts have them
        likely  of a batch of one: so many likeliest tokens are kept with their log-probabilities; see `likeliest`
        """
        eos = [] if ignore_eos else self.eos
        step = self._step_for(input_ids, attention_mask, cache, sampling, given is not None, likely)
        if step.given is not None and given is not None:
            step.given.fill(given)
        copy = HostCopy(step.out)
        with record_function(LOOP_NAME):
            step.begin(input_ids, attention_mask, seed, eos, replay)
            new_ids = self._run(step, copy, max_new_tokens, eos, meter)
        return torch.cat([input_ids, new_ids], 1)

    def _step_for(
        self, input_ids: Any, attention_mask: Any, cache: StaticSlotCache, sampling: Sampling, given: bool, likely: int
    ) -> Step:
        """The kept step, or a new one. The cache is filled before it is captured, so that no graph's pool holds it."""
        key = (id(cache), len(input_ids), sampling, given, likely)
        if self._step is None or key != self._key:
            self._step = None  # frees the last one and its graph
            step = Step(self.model, cache, len(input_ids), sampling, self.pad, given, self.prefill_chunk, likely)
            self._step, self._key = step, key
            if self.compile_mode is not None:
                step.advance = torch.compile(step.advance, mode=self.compile_mode, dynamic=False)
            mode = self.compile_mode if self.prefill_compiled else None
            graphs = self.cuda_graph and self.prefill_graphs
            if self.cuda_graph or mode:
                step.begin(input_ids, attention_mask, 0, [])
            if self.cuda_graph:
                with step.decoding():
                    step.advance = capture(step.advance, step.rewind)
                self.captures += 1
            if mode or graphs:
                step.make_prompts(mode, graphs)
        return self._step

    def _run(self, step: Step, copy: HostCopy, max_new_tokens: int, eos: list[int], meter: TokenMeter) -> Any:
        """Launch steps and read their tokens up to `ahead` steps later. Returns the new ids (B, generated)."""
        ahead = STEPS_AHEAD if step.out.is_cuda else 1
        pending: deque[Any] = deque([meter.event()])  # an event for each token that was launched and not read
        copy.send(0)  # `begin` has chosen the first
        running = set(range(step.out.shape[1]))  # rows
        launched, read, calls = 1, 0, step.calls  # tokens, and steps of earlier runs
        with step.decoding():
            while running and read < max_new_tokens:
                while launched < max_new_tokens and len(pending) < ahead:
                    step()
                    pending.append(meter.event())
                    copy.send(launched)
                    launched += 1
                ids = copy.read(read)
                meter.tell(pending.popleft(), ids)
                read += 1
                running = {row for row in running if ids[row] not in eos}
                if meter.stopping():
                    break
        self._generated, self.steps = read, step.calls - calls
        return step.out[:read].T.clone()

    # --- what the latest run left -------------------------------------------------------------------

    def scores(self) -> Any:
        """The logit of each new token of the latest run: (generated, B) float32, a copy."""
        assert self._step is not None
        return self._step.scores[: self._generated].clone()

    def given_logits(self) -> Any:
        """Logits (N, V) of the latest run, whose N new tokens were given."""
        assert self._step is not None and self._step.given is not None
        return self._step.given.logits[: self._generated]

    def likeliest(self, token: int) -> tuple[list[int], list[float]]:
        """At the place of that new token, in a run with `likely`: the ids of the likeliest tokens, and the
        log-probabilities of the chosen one and of these."""
        assert self._step is not None and self._step.likely is not None
        return self._step.likely.ids[token].tolist(), self._step.likely.nats[token].tolist()
