"""The ledger's row `tokens`: whether greedy texts hold the tokens that the model chooses in one pass over prompt and
text (teacher forcing), and of an encoder, whether a measured pass gave the hidden states that the model gives.
"""

import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from tokendyno.backend.evidence import TOKENS, Finding
from tokendyno.backend.plan import Plan
from tokendyno.backend.worker.prove.tensor_bytes import has_packed_weights

MOST_CHECKED = 64
"""Tokens of a text that are looked at: the logits of a position take as many numbers as the vocabulary."""
MOST_TOKENS = 4_096
"""Of a text with its prompt: the pass keeps no cache, and computes all of them at once."""

FLOAT32_SLACK, SIXTEEN_BITS_SLACK, PACKED_SLACK, GPU_SLACK = 0.02, 0.2, 0.75, 0.5
"""How far the logit of a token may lie below the best one, in standard deviations of the position's logits: kernels of
a whole text round otherwise than those of a step. On a CPU SmolLM2's logits differ by up to 0.03 in bfloat16 and 0.16
with LLM.int8 (root mean square), which looks for outliers among all rows of a pass (https://arxiv.org/abs/2208.07339).
A token that is not chosen by its logit lies about four below."""
ROUTED_SLACK = 1.5
"""The same of a mixture not in float32: where experts are nearly alike to a router, it may choose others in one pass
than in a step. LFM2-8B-A1B with random weights, in bfloat16 on a CPU: 14 of 64 tokens past 0.2, the farthest 0.94."""
FLOAT32_ROUNDING, SIXTEEN_BITS_ROUNDING = 1e-3, 0.05
"""The largest difference of a position's hidden states, as a share of their length, that orders of summation make.
States of another text differ by about their length. Our choice."""
SWAPPED, SWAPPED_NEAR = 1 / 8, 5
"""Up to this share of a text's tokens may be the second likeliest, behind by up to so many times the slack."""

MOST_REPEATED = 16
"""Tokens of a text that are looked at again, each in a pass of its own over what lies before it."""


class Text(NamedTuple):
    """Token ids of a prompt without padding, and of what was generated after it."""

    prompt: Sequence[int]
    generated: Sequence[int]

    @property
    def fits(self) -> bool:
        """Whether it is short enough for the pass."""
        return len(self.prompt) + len(self.generated) <= MOST_TOKENS


def beyond_check(plan: Plan, sampled: bool, texts: Sequence[Text]) -> str:
    """Why one pass cannot say which tokens such a run should have chosen; "" if it can."""
    if sampled:
        return "the text is sampled: only greedy tokens follow from the logits of one pass"
    if plan.routed and plan.load.device == "cuda":
        return "on a GPU a router may choose other experts in one pass over the text than in its steps"
    if plan.load.attention == "flex_attention":
        return "flex_attention would compile a graph for this one pass"
    if plan.generate.cache.quantized:
        return "the quantized cache rounds what the tokens were chosen from"
    if any(text.generated and text.fits for text in texts):
        return ""
    longer = any(not text.fits for text in texts)
    return f"prompt and text are longer than {MOST_TOKENS:,} tokens" if longer else "no token was generated"


def find_tokens(model: Any, plan: Plan, sampled: bool, texts: Sequence[Text]) -> Finding:
    """Counts the tokens that are among the likeliest at their places; unchecked, where the pass cannot say."""
    effective = "sampled" if sampled else "greedy"
    reason = beyond_check(plan, sampled, texts)
    if reason:
        return Finding(TOKENS, effective, reason, outcome="unchecked")
    try:
        checked = [text for text in texts if text.generated and text.fits]
        chosen = torch.cat([_chosen(model, text, plan.routed > 0).cpu() for text in checked])
    except Exception as error:
        return Finding(TOKENS, effective, _failure(error), outcome="unchecked")
    correct, total = int(chosen.sum()), len(chosen)
    proof = f"{correct} of {total} tokens are those that the model chooses in one pass over prompt and text"
    return Finding(TOKENS, effective, proof, correct, total)


def find_states(model: Any, plan: Plan, ids: torch.Tensor, mask: torch.Tensor, states: torch.Tensor) -> Finding:
    """Hidden states (B, S, H) of an encoder's last pass beside those of a plain one, over ids and mask (B, S)."""
    if plan.load.attention == "flex_attention":
        return Finding(TOKENS, "states", "flex_attention would compile a graph for this one pass", outcome="unchecked")
    try:
        with torch.inference_mode(), torch.compiler.set_stance("force_eager"):
            reference = model(input_ids=ids, attention_mask=mask)[0].float()
    except Exception as error:
        return Finding(TOKENS, "states", _failure(error), outcome="unchecked")
    tokens = mask.bool()
    distance = (states.float() - reference).norm(dim=-1)
    allowed = FLOAT32_ROUNDING if states.dtype == torch.float32 else SIXTEEN_BITS_ROUNDING
    close = distance <= reference.norm(dim=-1) * allowed  # False for NaN
    correct, total = int((tokens & close).sum()), int(tokens.sum())
    proof = f"{correct} of {total} positions of the last pass hold what a pass without compilation and capture gives"
    return Finding(TOKENS, "states", proof, correct, total)


def _failure(error: Exception) -> str:
    """Why a pass gave nothing. No user asked for it, and the run that it would end is complete."""
    if isinstance(error, torch.OutOfMemoryError):
        return "the pass needs more memory than is free"
    return f"the pass failed: {type(error).__name__}: {error}"[:300]


def _chosen(model: Any, text: Text, routed: bool) -> torch.Tensor:
    """(N,) bool for up to MOST_CHECKED tokens of a text: the last half of them from its end, the others spread over
    what lies before. What was compiled is passed by, since it would be compiled anew for this one length."""
    start, end = len(text.prompt), len(text.generated)
    count = min(end, MOST_CHECKED)
    spread = torch.linspace(0, end - count // 2 - 1, count - count // 2).round().long()
    places = torch.cat([spread, torch.arange(end - count // 2, end)])  # on the CPU: layers may lie on several GPUs
    ids = torch.tensor([[*text.prompt, *text.generated]], device=model.device)  # (1, P + N)
    inputs = ids[:, :-1]
    if model.device.type == "cuda":  # for other lengths than multiples of 16 Triton compiles its kernels anew
        inputs = torch.nn.functional.pad(inputs, (0, -inputs.shape[1] % 16), value=int(ids[0, -1]))
    logits = _logits(model, inputs, places + start - 1)  # (N, V)
    slack = _slack(model, routed)
    chosen = ids[0, start:].to(logits.device)[places.to(logits.device)]
    behind = _behind(logits, chosen)
    near = (behind > slack) & (behind <= SWAPPED_NEAR * min(slack, PACKED_SLACK))
    swapped = near & (logits.topk(2).indices[:, 1] == chosen)
    few = swapped.sum() <= max(1, count * SWAPPED)
    correct = (behind <= slack) | (swapped & few)
    # Attention of some models (Doge, CPM-Ant) looks at what follows in the text, unlike in steps.
    for i in (~correct).nonzero().flatten().tolist()[:MOST_REPEATED]:
        context = ids[:, : start + int(places[i])]
        correct[i] = bool(_behind(_logits(model, context, torch.tensor([-1])), chosen[i : i + 1]) <= slack)
    return correct


def _logits(model: Any, ids: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """(N, V) float32: of one pass, at these places. Some models give all, whatever is asked."""
    chooses = "logits_to_keep" in inspect.signature(model.forward).parameters
    keywords = {"logits_to_keep": places} if chooses else {}
    with torch.inference_mode(), torch.compiler.set_stance("force_eager"):
        logits = model(input_ids=ids, use_cache=False, **keywords).logits[0]  # (N or P, V)
    if not chooses:
        logits = logits[places.to(logits.device)]
    return logits.float()


def _behind(logits: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """(N,) by how many standard deviations the chosen ids are less likely than the best."""
    return (logits.max(-1).values - logits.gather(1, chosen[:, None])[:, 0]) / logits.std(-1)


def _slack(model: Any, routed: bool) -> float:
    if model.device.type == "cuda":
        return GPU_SLACK
    packed = has_packed_weights(model)
    if model.dtype == torch.float32 and not packed:
        return FLOAT32_SLACK
    if routed:
        return ROUTED_SLACK
    return PACKED_SLACK if packed else SIXTEEN_BITS_SLACK
