"""What transformers makes of a prompt, and what the custom decode loop makes of it."""

from types import SimpleNamespace
from typing import Any

import torch
from transformers import GenerationConfig

from tokendyno.backend.worker.loop.cache import StaticSlotCache
from tokendyno.backend.worker.loop.loop import DecodeLoop
from tokendyno.backend.worker.loop.sampling import Sampling

GREEDY = Sampling()
NEW = 18
"""Past a window of 8 for the second time, after a prompt of one token as well."""


class Told:
    """A meter that records the tokens, and stops after `most` of them."""

    def __init__(self, most: int = 1 << 30) -> None:
        self.ids: list[int] = []
        self._most = most

    def event(self) -> int:
        return 0

    def tell(self, event: int, ids: list[int]) -> None:
        self.ids.append(ids[0])

    def stopping(self) -> bool:
        return len(self.ids) >= self._most


def prompt(tokens: int, batch: int = 1, padded: int = 0) -> Any:
    """Random ids; the last row begins with `padded` ids of padding."""
    torch.manual_seed(tokens)
    ids = torch.randint(3, 97, (batch, tokens))
    mask = torch.ones_like(ids)
    mask[-1, :padded] = 0
    return SimpleNamespace(ids=ids.masked_fill(mask == 0, 0), mask=mask, batch_size=batch)


def generated(model: Any, ids: Any, mask: Any = None, new: int = NEW, **settings: Any) -> Any:
    """What `generate` returns: sequences, and the logits of each step."""
    mask = torch.ones_like(ids) if mask is None else mask
    how = GenerationConfig(
        **{"do_sample": False, "pad_token_id": 0} | settings,
        max_new_tokens=new,
        return_dict_in_generate=True,
        output_logits=True,
    )
    with torch.inference_mode():
        return model.generate(ids, attention_mask=mask, generation_config=how)


def greedy(model: Any, asked: Any, new: int = NEW, eos: list[int] | None = None) -> torch.Tensor:
    out: torch.Tensor = generated(model, asked.ids, asked.mask, new, eos_token_id=eos).sequences
    return out


def own(
    model: Any,
    asked: Any,
    new: int = NEW,
    eos: list[int] | None = None,
    told: Any = None,
    seed: int = 0,
    sampling: Sampling = GREEDY,
    compile_mode: str | None = None,
    loop: DecodeLoop | None = None,
    cache: Any = None,
    chunk: int = 0,
    given: list[int] | None = None,
) -> torch.Tensor:
    with torch.inference_mode():
        cache = StaticSlotCache(model.config, asked.ids.shape[1] + new) if cache is None else cache
        loop = loop or DecodeLoop(model, 0, eos or [], compile_mode, prefill_chunk=chunk)
        out: torch.Tensor = loop.generate(
            asked.ids, asked.mask, cache, new, told or Told(), sampling, seed, not eos, given
        )
    return out
