"""attention: layers that call another function than the one that was asked for, or see less than they should."""

import functools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import pytest
import torch
import transformers.models.llama.modeling_llama as llama_code
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from tests.sabotage.saboteur import Patch, Which, model_changed, table, tests_of
from tests.sabotage.small_models import LAYERS, mistral
from tokendyno.backend.worker.patch import attention as patch
from tokendyno.backend.worker.witness import attention as witness


def by_hand(module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: Any = None, **kwargs: Any) -> Any:
    """Attention in plain products and a softmax, with the masks of any implementation."""
    groups = query.shape[1] // key.shape[1]
    key, value = (tensor.repeat_interleave(groups, 1) for tensor in (key, value))
    scores = query @ key.transpose(2, 3) * scaling
    if isinstance(mask, torch.Tensor):
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    return (scores.softmax(-1) @ value).transpose(1, 2).contiguous(), None


def in_sdpa(module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: Any = None, **kwargs: Any) -> Any:
    dense = mask if isinstance(mask, torch.Tensor) else None  # not that of flex_attention: causal all the same
    return sdpa_attention_forward(module, query, key, value, dense, scaling=scaling)


@contextmanager
def swapped(choice: str, other: Any, where: Which, probed_too: bool) -> Iterator[None]:
    """`other` in the layers `where`; the short pass of the probe is left alone, unless it falls back as well."""
    probing: list[bool] = []
    original = {
        "eager": llama_code.eager_attention_forward,
        "sdpa": sdpa_attention_forward,
        "sdpa-gqa": patch.grouped_attention,
        "flex_attention": AttentionInterface()["flex_attention"],
    }[choice]

    def attend(module: Any, *args: Any, **kwargs: Any) -> Any:
        broken = where(module.layer_idx) and (probed_too or not probing)
        return (other if broken else original)(module, *args, **kwargs)

    real = witness.probed_calls

    def watched(model: Any) -> Any:
        probing.append(True)
        try:
            return real(model)
        finally:
            probing.clear()

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(witness, "probed_calls", watched))
        if choice == "eager":
            stack.enter_context(mock.patch.object(llama_code, "eager_attention_forward", attend))
        elif choice == "sdpa-gqa":
            stack.enter_context(mock.patch.object(patch, "grouped_attention", attend))
        else:
            stack.enter_context(mock.patch.dict(AttentionInterface._global_mapping, {choice: attend}))
        yield


def layers(choice: str, other: Any) -> dict[str, Patch]:
    """Manner -> what breaks the function of that name."""
    manners: dict[str, tuple[Which, bool]] = {
        "one layer": (lambda layer: layer == LAYERS - 1, False),
        "half of the layers": (lambda layer: layer % 2 == 0, False),
        "half of the layers, in the short pass too": (lambda layer: layer < LAYERS // 2, True),
    }
    return {manner: functools.partial(swapped, choice, other, *how) for manner, how in manners.items()}


def shorter() -> Any:
    """The loaded model's config says so: what is predicted from the file's does not."""
    return model_changed(lambda model: setattr(model.config, "sliding_window", 16))


SABOTEURS = [
    *table("attention", {"auto": layers("sdpa", by_hand), "eager": layers("eager", in_sdpa)}),
    *table(
        "attention", {"sdpa": layers("sdpa", by_hand), "sdpa-gqa": layers("sdpa-gqa", in_sdpa)}, {"cache": "static"}
    ),
    *table("attention", {"flex_attention": layers("flex_attention", in_sdpa)}, tier="full"),  # it is compiled
    *table("attention", {"auto": {"shorter windows": shorter}}, model=mistral, shown_by="cache", prompt_tokens=64),
]
test_sabotage_turns_a_row, test_the_control_is_verified = tests_of(SABOTEURS, pytest.mark.filterwarnings("ignore"))
