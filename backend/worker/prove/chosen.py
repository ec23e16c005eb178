"""Whether the tokens of a text are those that the model chooses: greedily, or with this seed, temperature and filters.

One pass over the whole text gives the logits that each token was chosen from. What a seed draws is added to them as
numbers that do not depend on the text, so every token can be looked at by itself.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from transformers import LogitsProcessorList, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from backend.counts import RunCounts
from backend.optimizations.tensor_bytes import has_packed_weights
from backend.plan import Plan
from backend.worker.prove.kept import OnePass, can_be_compared, compare
from backend.worker.prove.parts import parts_of
from backend.worker.prove.routes import Followed, Routing

MOST_CHECKED = 64
"""Generated tokens: the logits of a position take as many numbers as the vocabulary."""
MOST_TOKENS = 4_096
"""Of a whole text: its pass is made without a cache."""
SLACK = {torch.float32: 0.02}
OTHER_SLACK = 0.2
PACKED_SLACK = 0.75
GPU_SLACK = 0.5
SLACK_OF_STEPS = 0.01
"""How far a token's logit may lie below the one that should have won, in standard deviations of the position's logits:
sums that are ordered otherwise are rounded otherwise, more so in 16 bits, and most so where vectors are rounded to 8
bits to multiply with packed weights: LLM.int8 (https://arxiv.org/abs/2208.07339) looks for outliers among all rows of a
pass. On a CPU SmolLM2's logits of a step differ from those of a pass over the whole text by up to 0.03 in bfloat16 and
0.16 with LLM.int8 (root mean square). On a GPU such a pass takes other kernels than a step; what is not chosen by its
logit lies about four below. Steps that are made again take the same kernels in the same order."""

SWAPPED, SWAPPED_NEAR = 1 / 8, 5
"""Share of a greedy text's tokens that may be the second likeliest by more than the slack, and by how many times."""


@dataclass(frozen=True)
class Drawing:
    """How tokens are sampled.

    noise  for so many tokens and so large a vocabulary, Gumbel noise (tokens, vocabulary): the token with the largest
           sum of noise and logit, the latter warped, is the one that the seed draws
    """

    temperature: float
    top_k: int
    top_p: float
    noise: Callable[[int, int], torch.Tensor]

    @property
    def filters(self) -> bool:
        """Whether some tokens are kept out."""
        return bool(self.top_k) or self.top_p < 1

    def warped(self, logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """Logits (N, V) divided by the temperature; those of tokens that the filters keep out are -inf."""
        warpers = LogitsProcessorList([TemperatureLogitsWarper(self.temperature)])
        if self.top_k:
            warpers.append(TopKLogitsWarper(self.top_k))
        if self.top_p < 1:
            warpers.append(TopPLogitsWarper(self.top_p))
        return warpers(ids[None], logits)


class Logits:
    """Keeps what steps with a given text choose from. ids: that text."""

    def __init__(self, ids: list[int]) -> None:
        self.ids = ids
        self._kept: dict[int, torch.Tensor] = {}

    def take(self, position: int, logits: Any) -> None:
        """(V,) of that token; a position that is given again replaces what it was."""
        self._kept[position] = logits.float()

    def every(self) -> torch.Tensor:
        """(tokens, V). KeyError if one is missing."""
        return torch.stack([self._kept[position] for position in range(len(self.ids))])


Again = Callable[[list[int]], torch.Tensor]
"""Given new tokens, the logits (tokens, V) from which steps like those of the run choose each of them."""


ROUNDED = "the quantized cache rounds what tokens were chosen from"
"""What is beyond the check of tokens then; what the cache kept may be held against the pass all the same."""


def beyond_check(plan: Plan, sampled: bool, rows: int = 1) -> str:
    """Why tokens of such runs cannot be held against a pass over the whole text, as the end of a sentence; "" if they
    can: not after a cache that rounds what it keeps, nor where the experts of a mixture's steps cannot be told; on
    ranks only greedy ones are, so far. rows: texts at once"""
    ranks = plan.load.parallel.ranks > 1
    if follows_routes(plan) and ranks:
        return "on several ranks only that of models without experts is, on a GPU"
    if follows_routes(plan) and (plan.generate.compile_mode or plan.generate.prompt_lookup or rows > 1):
        return "on a GPU routers may choose other experts in the pass that tokens are held against"
    if plan.generate.prompt_lookup and not sampled:
        return ""
    if ranks and sampled:
        return "on several ranks only greedy text is"
    if plan.load.attention == "flex_attention":
        return "flex_attention would compile the pass that tokens are held against"
    return ROUNDED if plan.generate.cache.quantized else ""


def follows_routes(plan: Plan) -> bool:
    """Whether the pass takes the experts of the steps: on a CPU it is rounded as they are."""
    return plan.load.device == "cuda" and plan.routed > 0


def uncounted(tokens: int) -> str:
    """Why `checked` counted nothing of a text with so many tokens, prompt included, as the end of a sentence."""
    if tokens > MOST_TOKENS:
        return f"the text is longer than {MOST_TOKENS:,} tokens"
    return "the pass that tokens are held against needs more memory than is free"


def checked(
    model: Any, prompt: Sequence[int], generated: Sequence[int], drawing: Drawing | None = None,
    routing: Routing | None = None, again: Again | None = None, cache: Any = None, padding: int = 0,
    rows: Collection[int] = (0,),
) -> RunCounts:  # fmt: skip
    """Counts the tokens that were not chosen as they should: of a greedy text among the last and some of those before
    them, else among the first, since a seed draws in their order. Nothing is counted where the text is too long, or the
    GPU's memory too small.

    Drawn tokens at the limits of the filters are held against the logits of `again`, which are rounded as the run's.
    What `cache` kept of the text, behind so many places of padding, is held against the pass too: all of it in `rows`,
    its prompt in the others.

    With `routing` they are the first ones too, whose steps are made again; UnknownRoutes where these do not tell their
    experts. What was compiled is passed by: nothing is compiled for this one length.
    """
    if drawing is not None or routing is not None:
        generated = generated[:MOST_CHECKED]
    ids = torch.tensor([[*prompt, *generated]], device=model.device)
    new, end = min(len(generated), MOST_CHECKED), len(generated)
    spread = torch.linspace(0, end - new // 2 - 1, new - new // 2).round().long()  # and all of the last ones
    places = torch.cat([spread, torch.arange(end - new // 2, end)]).to(ids.device)
    chosen = ids[0, len(prompt) :][places]
    if not new or ids.shape[1] > MOST_TOKENS:
        return RunCounts()
    try:
        followed = None if routing is None else Followed(routing(list(generated)))
        with torch.inference_mode(), torch.compiler.set_stance("force_eager"):
            anew = OnePass() if can_be_compared(cache) else None
            with followed or nullcontext():
                logits = model(
                    input_ids=ids[:, :-1], past_key_values=anew, use_cache=anew is not None,
                    logits_to_keep=places + len(prompt) - 1,
                ).logits[0].float()  # fmt: skip
            slack = _slack(model) * logits.std(-1)
            counts = RunCounts(checked_tokens=float(new))
            if anew is not None:
                kept = compare(
                    cache, anew, padding, len(prompt), rows, has_packed_weights(model),
                    "mixture" in parts_of(model).values(), _window(model),
                )  # fmt: skip
                counts.compared_layers, counts.strange_layers = float(kept.compared), float(kept.strange)
            if drawing is None:
                strange = _greedy(logits, chosen, slack)
            else:
                strange, edge, decided = _drawn(logits, ids[0, -new:], slack, drawing)
                if again is not None and edge.any():
                    strange |= _beyond(again, ids[0, -new:], edge, drawing)
                if drawing.filters:
                    counts.filtered_tokens = float(decided.sum())
            if followed is not None:
                strange |= followed.strayed()[-new:]
            counts.strange_tokens = float(strange.sum())
            return counts
    except torch.OutOfMemoryError:
        return RunCounts()


def _window(model: Any) -> int:
    """Tokens; 0 where there is none, or layers attend in chunks."""
    config = model.config.get_text_config(decoder=True)
    return 0 if getattr(config, "attention_chunk_size", None) else getattr(config, "sliding_window", None) or 0


def _slack(model: Any) -> float:
    if model.device.type == "cuda":
        return GPU_SLACK
    return PACKED_SLACK if has_packed_weights(model) else SLACK.get(model.dtype, OTHER_SLACK)


def _greedy(logits: torch.Tensor, ids: torch.Tensor, slack: torch.Tensor) -> torch.Tensor:
    """(N,) tokens that are not nearly the likeliest one; a few may be the second one all the same, which may have been
    swapped with it."""
    best = logits.topk(2)
    behind = best.values[:, 0] - _of(logits, ids) > slack
    near = best.values[:, 0] - _of(logits, ids) <= SWAPPED_NEAR * slack
    swapped = behind & near & (best.indices[:, 1] == ids)
    few = swapped.sum() <= max(1, len(ids) * SWAPPED)
    return behind & ~(swapped & few)


def _drawn(logits: torch.Tensor, ids: torch.Tensor, slack: torch.Tensor, drawing: Drawing) -> Any:
    """(N,) each: tokens that lose against another one that no filter keeps out, or that the filters should have kept
    out; those that they keep out by less than the slack, where either may be right; those that are drawn because of
    them."""
    warped = drawing.warped(logits, ids)
    noise = drawing.noise(*logits.shape).to(logits.device)
    least = logits.masked_fill(warped.isinf(), torch.inf).min(-1).values
    filtered = warped.isinf().any(-1)
    unsure = filtered[:, None] & (logits < (least + slack)[:, None])
    scores = logits / drawing.temperature + noise
    lost = (warped + noise).masked_fill(unsure, -torch.inf).max(-1).values - _of(scores, ids)
    strange = (lost * drawing.temperature > slack) | (_of(logits, ids) < least - slack)
    return strange, ~strange & _of(warped, ids).isinf(), ~strange & (scores.argmax(-1) != ids)


def _beyond(again: Again, ids: torch.Tensor, edge: torch.Tensor, drawing: Drawing) -> torch.Tensor:
    """(N,) tokens at the edge that the filters keep out of what the steps chose from, too."""
    end = int(edge.nonzero().max()) + 1
    logits = again(ids[:end].tolist())
    least = logits.masked_fill(drawing.warped(logits, ids[:end]).isinf(), torch.inf).min(-1).values
    slack = SLACK_OF_STEPS * logits.std(-1)
    beyond = torch.zeros_like(edge)
    beyond[:end] = edge[:end] & (_of(logits, ids[:end]) < least - slack)
    return beyond


def _of(numbers: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """(N,) the number of each id in its row."""
    return numbers.gather(1, ids[:, None])[:, 0]
