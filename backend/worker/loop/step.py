"""A decode step on tensors that never move, so that it can be compiled whole or captured as a CUDA graph.

`begin` reads the prompt and appends the first token. Then each call is a step: the model reads the newest token, the
next one is chosen from its logits, all counters advance, and the token is appended. Shapes: B texts, a prompt of P
tokens, L slots in the cache, V words in the vocabulary.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.profiler import record_function

from tokendyno.backend.optimizations.axes.loop import STEP_NAME, slot_masks
from tokendyno.backend.worker.loop.cache import StaticSlotCache, fixed_zeros
from tokendyno.backend.worker.loop.cuda_graph import CapturedPasses, without_idle_mask
from tokendyno.backend.worker.loop.sampling import Sampling, sample

MAX_EOS = 16
STEP_END = "tokendyno_step_end"
"""Attribute of a model that holds its `StepEnd`, where a kernel replaces it."""


class Step:
    """Everything that one decode step reads and writes, in place.

    positions  (B, 1) the position of the newest token in each row's text
    out        (L, B) all new ids so far, one row per step
    scores     (L, B) float32: the logits of these ids; NaN where a row of logits had NaN
    done       (B,) rows that have ended: they continue as padding, as in `generate`. Not used in a batch of one, which
               ends when the host sees the EOS
    turns      (1,) int32 zero, in which a kernel counts its finished programs
    given      tokens that are taken instead of chosen; None: they are chosen
    likely     log-probabilities of the chosen and the likeliest tokens; None: not wanted
    chunk      tokens of the prompt in one pass; 0: all of them
    prompts    reads a prompt by a pass that was compiled or captured for its length; None: by the model's own code
    """

    def __init__(
        self,
        model: Any,
        cache: StaticSlotCache,
        batch_size: int,
        sampling: Sampling,
        pad: int,
        given: bool = False,
        chunk: int = 0,
        likely: int = 0,
    ) -> None:
        self._model, self.cache, self._sampling, self.pad = model, cache, sampling, pad
        self._config = model.config.get_text_config(decoder=True)
        # of the kinds of attention that take a mask over slots, eager alone adds it to its scores
        cache.additive = model.dtype if self._config._attn_implementation == "eager" else None
        self._end, self._chunk = getattr(model, STEP_END, None) or StepEnd(), chunk
        device = model.device
        self.token, self.positions = fixed_zeros(device, batch_size, 1), fixed_zeros(device, batch_size, 1)
        self.out = fixed_zeros(device, cache.length, batch_size)
        self.scores = fixed_zeros(device, cache.length, batch_size, dtype=torch.float32)
        self.done = fixed_zeros(device, batch_size, dtype=torch.bool)
        self.eos, self.seed = fixed_zeros(device, MAX_EOS), fixed_zeros(device, 1)
        self.turns = fixed_zeros(device, 1, dtype=torch.int32)
        self.given = Given(cache.length, scored_ids(model), model.dtype, device) if given else None
        self.likely = Likely(cache.length, likely, device) if likely else None
        self.advance: Callable[[], None] = self._advance
        self.prompts: Callable[..., Any] | None = None
        self.calls = 0

    # --- the prompt --------------------------------------------------------------------------------

    def begin(self, input_ids: Any, attention_mask: Any, seed: int, eos: list[int], replay: bool = True) -> None:
        """Read the prompt (B, P) and choose the first token. `replay`: by `prompts`, if there is such a pass."""
        self.seed.fill_(seed)
        self.eos.fill_(-1)
        if eos:
            self.eos[: len(eos)] = torch.tensor(eos, device=self.eos.device)
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if self.prompts is None or not replay:
            self._begin(self._read, **inputs)
        else:
            self.prompts(**without_idle_mask(inputs))
            self.cache.replayed(input_ids.shape[1])

    def _begin(self, read: Callable[..., Any], input_ids: Any, attention_mask: Any = None) -> None:
        """The part of `begin` that runs on the device. Without a mask (B, P) nothing is padded."""
        self.cache.reset()
        filled = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        positions = (filled.cumsum(-1) - 1).clamp(min=0)  # (B, P), in each text
        logits = read(input_ids, attention_mask, positions)  # (B, V), of the last token
        self.cache.begin(filled)
        self.positions.copy_(positions[:, -1:] + 1)
        self.done.zero_()
        self.append(self._chosen(logits), logits)

    def _read(self, input_ids: Any, attention_mask: Any, positions: Any) -> Any:
        """Logits (B, V) of the last tokens of a prompt (B, P). Each chunk attends to those before it by the cache."""
        logits, end, chunk = None, 0, self._chunk or input_ids.shape[1]
        for ids, places in zip(input_ids.split(chunk, -1), positions.split(chunk, -1), strict=True):
            end += ids.shape[1]
            logits = self._model(
                input_ids=ids,
                attention_mask=None if attention_mask is None else attention_mask[:, :end],
                position_ids=places,
                past_key_values=self.cache,
                use_cache=True,
                logits_to_keep=1,
            ).logits[:, -1]
        return logits

    def make_prompts(self, compile_mode: str | None, captured: bool) -> None:
        """From now on prompts have passes of their own. The cache has its memory: it must not be of a graph's pool."""
        read: Callable[..., Any] = self._read
        if compile_mode is not None:
            read = torch.compile(read, mode=compile_mode, dynamic=False)

        def begin(**inputs: Any) -> None:
            self._begin(read, **inputs)

        self.prompts = CapturedPasses(begin) if captured else begin

    # --- a step ------------------------------------------------------------------------------------

    def __call__(self) -> None:
        with record_function(STEP_NAME):
            self.advance()
        self.calls += 1

    def _advance(self) -> None:
        """The part of a step that runs on the device."""
        self.cache.keep()
        logits = self._model(
            input_ids=self.token,  # (B, 1)
            attention_mask=self._masks(),  # (B, 1, 1, L), one for each kind of layer
            position_ids=self.positions,  # (B, 1)
            past_key_values=self.cache,
            use_cache=True,
        ).logits[:, -1]  # (B, V)
        if self._sampling.temperature == 0 and self.given is None and self.likely is None:
            self._end(logits, self)
        else:
            self.advance_slots()
            self.append(self._chosen(logits), logits)

    def _masks(self) -> Any:
        """Attention masks (B, 1, 1, slots), as the model takes them."""
        full, sliding = (None if slots is None else slots.mask for slots in (self.cache.full, self.cache.sliding))
        return slot_masks(self._config, full, sliding)

    def _chosen(self, logits: Any) -> Any:
        """The next ids (B,), from logits (B, V)."""
        if self.given is not None:
            return self.given.choose(logits, self.cache.step)
        return sample(logits, self._sampling, self.seed, self.cache.step)

    def advance_slots(self) -> None:
        self.cache.advance()
        self.positions.add_(1)

    def append(self, ids: Any, logits: Any) -> None:
        """Make ids (B,), chosen from logits (B, V), the newest tokens; in rows that are done padding."""
        self.scores.index_copy_(0, self.cache.step, logits.gather(1, ids[:, None]).T.float())
        if self.likely is not None:
            self.likely.keep(self.cache.step, ids, logits)
        if len(ids) > 1:
            ids = torch.where(self.done, self.pad, ids)
            self.done.logical_or_((ids[:, None] == self.eos).any(-1))
        self.out.index_copy_(0, self.cache.step, ids[None])
        self.token.copy_(ids[:, None])
        for slots in self.cache.slots:
            slots.fill()

    # --- around the steps --------------------------------------------------------------------------

    def rewind(self) -> None:
        """Return to slot 0, so that warm-up steps stay inside the cache. The mask is wrong until `begin`."""
        self.cache.counters.zero_()

    def decoding(self) -> Any:
        """Around steps: experts in the implementation that `generate` uses while it decodes."""
        return self._model._optimize_model_for_decode()


class StepEnd(nn.Module):  # type: ignore[misc]
    """The end of a greedy step: a module without weights, so that a kernel can replace it like a layer of the model. It
    writes into the tensors of the step and returns nothing."""

    def forward(self, logits: Any, step: "Step") -> None:
        """Append the likeliest tokens by logits (B, V), and advance to the next slot."""
        step.advance_slots()
        step.append(logits.argmax(-1), logits)  # no float32 needed: rounding has made its ties already


def scored_ids(model: Any) -> int:
    """Logits for each position, also where each rank has some of the head's rows."""
    head = model.get_output_embeddings()
    return int(getattr(head, "out_features", 0) or head.weight.shape[0])


class Given:
    """Tokens that the steps of a batch of one take, ids (L,), and what they would have chosen from, logits (L, V)."""

    def __init__(self, length: int, vocabulary: int, dtype: Any, device: Any) -> None:
        self.ids = fixed_zeros(device, length)
        self.logits = fixed_zeros(device, length, vocabulary, dtype=dtype)

    def fill(self, ids: list[int]) -> None:
        """Set the tokens of the next run, at most L."""
        self.ids[: len(ids)] = torch.tensor(ids, device=self.ids.device)

    def choose(self, logits: Any, step: Any) -> Any:
        """The id (1,) of this step; keeps its logits (1, V)."""
        self.logits.index_copy_(0, step, logits.to(self.logits.dtype))
        return self.ids[step]


class Likely:
    """Log-probabilities (nats) of the token that each step of a batch of one chose, and of the `most` likeliest ones.
    ids: (L, most); nats: (L, 1 + most), the chosen token's first."""

    def __init__(self, length: int, most: int, device: Any) -> None:
        self.most = most
        self.ids = fixed_zeros(device, length, most)
        self.nats = fixed_zeros(device, length, 1 + most, dtype=torch.float32)

    def keep(self, step: Any, chosen: Any, logits: Any) -> None:
        """Of this step (1,), with its chosen id (1,) and the logits (1, V) that it was chosen from."""
        nats = logits.float().log_softmax(-1)
        best = nats.topk(self.most)
        self.ids.index_copy_(0, step, best.indices)
        self.nats.index_copy_(0, step, torch.cat([nats.gather(1, chosen[:, None]), best.values], 1))
