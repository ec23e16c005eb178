"""Whether the model received the prompt that was asked for.

Everything else that is counted of a prompt follows from what was read of it, so that a prompt that is read wrongly is
consistent with itself. Here it is read once more, from the command and by other code.
"""

import logging
from itertools import zip_longest
from typing import Any

from backend.config import EFFORTS, STOCK_SENTENCE
from backend.counts import RunCounts
from backend.messages import Generate
from backend.traffic import TrafficRequest
from backend.traffic.prompts import prompt_text
from backend.worker.load.unread import token_ids
from backend.worker.prompt.chat import messages, rendering
from backend.worker.prompt.prompt import Prompt
from backend.worker.prompt.requests import Asked

log = logging.getLogger(__name__)


def asked_ids(tokenizer: Any, job: Generate) -> list[int] | None:
    """Token ids of the prompt of a command that could be run, without padding; None where its chat template renders
    once and not again."""
    text = job.prompt if job.prompt.strip() or not job.prompt_tokens else STOCK_SENTENCE
    try:
        ids = _of_chat(tokenizer, text, job) if job.chat else token_ids(tokenizer, text)
    except Exception:  # whatever a stranger's template raises: the run that it would end is complete
        log.warning("the prompt could not be read once more", exc_info=True)
        return None
    return [ids[place % len(ids)] for place in range(job.prompt_tokens or len(ids))]


def held_against(asked: list[int] | None, prompt: Prompt, received: Any = None) -> RunCounts:
    """Counts the tokens asked for, and how many a row has wrongly: other ones, missing ones and those too many.

    received  ids (B, P or more) as the model got them, drafts behind the prompt; None where that cannot be seen, and
              those of `prompt`, which it was called with, stand for them
    """
    if asked is None:
        return RunCounts()
    wrong = 0
    rows = (prompt.ids if received is None else received[:, : prompt.tokens]).tolist()
    for row, mask in zip(rows, prompt.mask.tolist(), strict=True):
        kept = [one for one, real in zip(row, mask, strict=True) if real] if len(row) == len(mask) else row
        wrong = max(wrong, sum(one != other for one, other in zip_longest(asked, kept)))
    return RunCounts(asked_tokens=float(len(asked)), misread_tokens=float(wrong))


def requests_held_against(tokenizer: Any, asked: list[TrafficRequest], read: list[Asked]) -> RunCounts:
    """The same for many requests, as they are given to the batches: tokens of all of them."""
    tokens = wrong = 0
    for one, given in zip_longest(asked, read):
        ids = [] if one is None else _of_request(tokenizer, one)
        tokens += len(ids)
        wrong += sum(a != b for a, b in zip_longest(ids, [] if given is None else given.ids))
    return RunCounts(asked_tokens=float(tokens), misread_tokens=float(wrong))


def _of_request(tokenizer: Any, one: TrafficRequest) -> list[int]:
    text = one.prompt if one.prompt.strip() else prompt_text(one.seed, one.prompt_tokens)
    ids = one.token_ids or token_ids(tokenizer, text)
    return [ids[place % len(ids)] for place in range(one.prompt_tokens or len(ids))]


def _of_chat(tokenizer: Any, text: str, job: Generate) -> list[int]:
    effort: dict[str, Any] = {}
    if job.reasoning_effort in EFFORTS:
        effort = {"reasoning_effort": job.reasoning_effort}
    elif job.reasoning_effort:  # a template takes no notice of a name that it does not read
        effort = dict.fromkeys(("enable_thinking", "thinking"), job.reasoning_effort == "on")
    asked = messages(tokenizer, text, job.system, effort)
    with rendering(tokenizer):
        ids: list[int] = tokenizer.apply_chat_template(asked, add_generation_prompt=True, return_dict=False, **effort)
    return ids
