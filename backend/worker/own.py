"""Our own decode loop: one step on tensors that never move, run plainly, compiled, or as a captured CUDA graph.

The host runs a few steps ahead of what it has read: token n is copied out behind the computation and looked at while
later steps are under way, so an end of text is seen a few tokens late and what came after it is thrown away.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import record_function
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

from backend.errors import InputError
from backend.optimizations.loop import LOOP_NAME, STEP_NAME
from backend.plan import GeneratePlan
from backend.worker import ending
from backend.worker.compiling import compile_step
from backend.worker.graphs import CopiedOut, captured
from backend.worker.sampling import Sampling, choose
from backend.worker.steady import SteadyCache

AHEAD = 3  # steps under way at most: what a cancel or an end of text may cost
_MOST_ENDS = 8


class OwnLoop:
    """The loop of one model. Keeps the last step, with its compiled and captured form, for the next run alike."""

    def __init__(self, model: Any, pad: int, ends: list[int], counts: dict[str, float]) -> None:
        self._model, self._pad, self._ends, self._counts = model, pad, ends, counts
        self._key: Any = None
        self._step: Step | None = None

    def generate(
        self, plan: GeneratePlan, sampling: Sampling, seed: int, prompt: Any, cache: SteadyCache, tokens: int,
        ignore_eos: bool, meter: Any,
    ) -> Any:  # fmt: skip
        """Ids of prompt and new tokens, (B, P + made). `meter`: told each token once it is known to count."""
        ends = [] if ignore_eos else self._ends
        if len(ends) > _MOST_ENDS:
            raise InputError(
                f"The own loop knows {_MOST_ENDS} ends of text, this model has {len(ends)}. Take loop=generate."
            )
        step = self._step_for(plan, sampling, prompt, cache)
        copied = CopiedOut(step.out)
        with record_function(LOOP_NAME):
            step.begin(prompt, seed, ends)
            made = self._run(step, copied, tokens, ends, meter)
        return torch.cat([prompt.ids, made], 1)

    def _step_for(self, plan: GeneratePlan, sampling: Sampling, prompt: Any, cache: SteadyCache) -> "Step":
        key = (id(cache), prompt.batch_size, sampling, plan)
        if self._step is None or key != self._key:
            self._step = None
            self._step = Step(self._model, cache, prompt.batch_size, sampling, self._pad)
            self._key = key
            if plan.compile_mode is not None:
                self._step.advance = compile_step(self._step.advance, plan)
            if plan.cuda_graphs == "manual":
                self._step.begin(prompt, 0, [])
                with self._step.decoding():
                    self._step.advance = captured(self._step.advance, self._step.rewind)
                self._counts["graph_captures"] = self._counts.get("graph_captures", 0) + 1
        return self._step

    def _run(self, step: "Step", copied: CopiedOut, tokens: int, ends: list[int], meter: Any) -> Any:
        ahead = AHEAD if step.out.is_cuda else 1
        waiting: deque[Any] = deque([meter.mark()])
        copied.send(0, waiting[-1])
        going = set(range(step.out.shape[1]))
        made, told = 1, 0
        with step.decoding():
            while going and told < tokens:
                while made < tokens and len(waiting) < ahead:
                    step()
                    waiting.append(meter.mark())
                    copied.send(made, waiting[-1])
                    made += 1
                ids = copied.read(told)
                meter.tell(waiting.popleft(), ids[0])
                told += 1
                going = {row for row in going if ids[row] not in ends}
                if meter.stopping():
                    break
        self._counts["own_steps"] = self._counts.get("own_steps", 0) + made - 1
        return step.out[:told].T.clone()


class Step:
    """Everything that one decode step reads and writes, in place.

    token      (B, 1) the newest ids
    positions  (B, 1) where in its text each row stands
    out        (L, B) every new id so far, one row a step
    done       (B,) rows that met an end of text: they go on as padding, like in `generate`. One row alone ends when
               the host has seen it, and needs none of this
    turns      (1,) int32 zero, with which a kernel counts its programs
    """

    def __init__(self, model: Any, cache: SteadyCache, batch_size: int, sampling: Sampling, pad: int) -> None:
        self._model, self.cache, self._sampling, self.pad = model, cache, sampling, pad
        self._config = model.config.get_text_config(decoder=True)
        self._additive = _additive(self._config)
        self._end = ending.of(model)
        device = model.device

        def zeros(*shape: int, dtype: torch.dtype = torch.long) -> Any:
            steady = torch.zeros(*shape, dtype=dtype, device=device)
            torch._dynamo.mark_static_address(steady)
            return steady

        self.token, self.positions = zeros(batch_size, 1), zeros(batch_size, 1)
        self.out = zeros(cache.length, batch_size)
        self.done, self.ends, self.seed = zeros(batch_size, dtype=torch.bool), zeros(_MOST_ENDS), zeros(1)
        self.turns = zeros(1, dtype=torch.int32)
        self.advance: Callable[[], None] = self._advance

    def begin(self, prompt: Any, seed: int, ends: list[int]) -> None:
        """Read the prompt and choose the first token. The cache must be empty."""
        self.cache.reset()
        places = (prompt.mask.cumsum(-1) - 1).clamp(min=0)
        logits = self._model(
            input_ids=prompt.ids, attention_mask=prompt.mask, position_ids=places, past_key_values=self.cache,
            use_cache=True, logits_to_keep=1,
        ).logits[:, -1]  # fmt: skip
        self.cache.begin(prompt.mask)
        self.positions.copy_(places[:, -1:] + 1)
        self.seed.fill_(seed)
        self.ends.fill_(-1)
        if ends:
            self.ends[: len(ends)] = torch.tensor(ends, device=self.ends.device)
        self.done.zero_()
        self.settle(choose(logits, self._sampling, self.seed, self.cache.count))

    def rewind(self) -> None:
        """Stand at the first place, where a step for warming up cannot leave the cache. What it may attend to is
        then not what it should be, which `begin` puts right."""
        self.cache.counters.zero_()

    def decoding(self) -> Any:
        """Around the steps: experts as `generate` runs them while it decodes."""
        return self._model._optimize_model_for_decode()

    def __call__(self) -> None:
        with record_function(STEP_NAME):
            self.advance()

    def _advance(self) -> None:
        logits = self._model(
            input_ids=self.token, attention_mask=self._masks(), position_ids=self.positions,
            past_key_values=self.cache, use_cache=True,
        ).logits[:, -1]  # fmt: skip
        if self._sampling.temperature == 0:
            self._end(logits, self)
        else:
            self.move_on()
            self.settle(choose(logits, self._sampling, self.seed, self.cache.count))

    def move_on(self) -> None:
        """Stand at the next place."""
        self.cache.advance()
        self.positions.add_(1)

    def settle(self, chosen: Any) -> None:
        """(B,) ids become the newest tokens, or padding in rows that are done; their places count as filled."""
        if len(chosen) > 1:
            chosen = torch.where(self.done, self.pad, chosen)
            self.done.logical_or_((chosen[:, None] == self.ends).any(-1))
        self.out.index_copy_(0, self.cache.count, chosen[None])
        self.token.copy_(chosen[:, None])
        for place in self.cache.places:
            place.take()

    def _masks(self) -> Any:
        """What attention may look at, (B, 1, 1, places): a mask a kind of layer where the model wants several."""
        full, sliding = (self._mask(place) for place in (self.cache.full, self.cache.sliding))
        if hasattr(self._config, "layer_types"):
            return {"full_attention": full, "sliding_attention": sliding}
        return full if sliding is None else sliding

    def _mask(self, place: Any) -> Any:
        if place is None:
            return None
        mask = place.filled[:, None, None, :]
        if not self._additive:
            return mask
        dtype = self._model.dtype
        return torch.zeros((), dtype=dtype, device=mask.device).masked_fill(~mask, torch.finfo(dtype).min)


def _additive(config: Any) -> bool:
    """Whether this attention adds its mask (eager) or takes a boolean one (sdpa), as its own mask function makes it."""
    name = config._attn_implementation
    make = ALL_MASK_ATTENTION_FUNCTIONS._global_mapping.get(name)
    mask = None
    if make is not None and "flex" not in name:
        mask = make(batch_size=1, q_length=1, kv_length=2, q_offset=1, dtype=torch.float32, allow_is_causal_skip=False)
    if mask is None:
        raise InputError(
            f"The own loop gives attention a 4D mask, which {name} does not take. Take attention=sdpa or eager."
        )
    return bool(mask.dtype != torch.bool)
