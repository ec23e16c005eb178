"""Padding that the model never sees, or other padding than planned; symbolic shapes that are not."""

from typing import Any
from unittest import mock

import pytest

from backend.predict.lengths import rounded
from backend.worker.prompt import padding
from backend.worker.runners import decode
from tests.sabotage.saboteur import Sabotage, tests_of
from tests.sabotage.small_models import llama
from tests.sabotage.test_compile import forgotten  # noqa: F401

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(900)]
SYMBOLIC = (("cache", "static"), ("compile", "default"))


def not_padded() -> Any:
    return mock.patch.object(decode, "pad", lambda prompt, *_: prompt)


def padding_is_cut_off() -> Any:
    """The prompt is padded, and generate gets the rest."""
    from transformers import GenerationMixin

    plain = GenerationMixin.generate

    def generate(model: Any, ids: Any, attention_mask: Any, **more: Any) -> Any:
        kept = attention_mask[0].bool()
        return plain(model, ids[:, kept], attention_mask=attention_mask[:, kept], **more)

    return mock.patch.object(GenerationMixin, "generate", generate)


def padded_to_half() -> Any:
    return mock.patch.object(padding, "rounded", lambda shapes, tokens: rounded(shapes, tokens) // 2)


def static_sizes() -> Any:
    import torch

    plain = torch.compile
    return mock.patch.object(torch, "compile", lambda model, **how: plain(model, **how | {"dynamic": False}))


def _padded(choice: str, manner: str, patch: Any, tier: Any = "slow") -> Sabotage:
    return Sabotage("shapes", choice, manner, patch, model=llama, tier=tier)


SABOTEURS = [
    _padded("padded", "not padded", not_padded),
    _padded("padded", "cut off before the model", padding_is_cut_off),
    _padded("padded", "to half of the length", padded_to_half, "full"),
    _padded("buckets", "not padded", not_padded),
    _padded("buckets", "cut off before the model", padding_is_cut_off, "full"),
    _padded("buckets", "to half of the length", padded_to_half, "full"),
    Sabotage("shapes", "dynamic", "sizes are not symbols", static_sizes, SYMBOLIC, llama, tier="full"),
]
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)
