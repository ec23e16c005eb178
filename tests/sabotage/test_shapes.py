"""Padding that the model never sees, or other padding than planned; symbolic shapes that are not."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import pytest
import torch

from backend.evidence import Evidence
from backend.predict.lengths import rounded
from backend.runs.run import Run
from backend.worker.prompt import padding
from backend.worker.prompt.prompt import Prompt, read_prompt
from backend.worker.runners import decode
from tests.sabotage.ledger_of import run_of
from tests.sabotage.saboteur import Sabotage, tests_of
from tests.sabotage.small_models import llama
from tests.sabotage.test_compile import forgotten  # noqa: F401

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(900)]
Patch = Callable[[], AbstractContextManager[Any]]
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


def read_otherwise(change: Callable[[torch.Tensor], torch.Tensor]) -> Patch:
    """The prompt is read wrongly, and all that follows is consistent with that. `change`: its ids (B, P)."""

    def read(*args: Any) -> Any:
        ids = change((right := read_prompt(*args)).ids)
        return Prompt(ids, torch.ones_like(ids), right.notes)

    return lambda: mock.patch.object(decode, "read_prompt", read)


WRONG: dict[str, Patch] = {
    "three tokens are dropped": read_otherwise(lambda ids: ids[:, :-3]),
    "the first token is dropped": read_otherwise(lambda ids: ids[:, 1:]),
    "twice": read_otherwise(lambda ids: torch.cat([ids, ids], 1)),
    "backwards": read_otherwise(lambda ids: ids.flip(1)),
}


def static_sizes() -> Any:
    plain = torch.compile
    return mock.patch.object(torch, "compile", lambda model, **how: plain(model, **how | {"dynamic": False}))


def _padded(choice: str, manner: str, patch: Any, tier: Any = "slow") -> Sabotage:
    return Sabotage("shapes", choice, manner, patch, model=llama, tier=tier)


OWN = (("cache", "static"), ("loop", "own"))
SABOTEURS = [
    _padded("padded", "not padded", not_padded),
    _padded("padded", "cut off before the model", padding_is_cut_off),
    _padded("padded", "to half of the length", padded_to_half, "full"),
    _padded("buckets", "not padded", not_padded),
    _padded("buckets", "cut off before the model", padding_is_cut_off, "full"),
    _padded("buckets", "to half of the length", padded_to_half, "full"),
    Sabotage("shapes", "dynamic", "sizes are not symbols", static_sizes, SYMBOLIC, llama, tier="full"),
]
SABOTEURS += [
    Sabotage("shapes", "buckets", f"prompt read wrongly{where}: {manner}", patch, beside, llama, tier="full")
    for manner, patch in WRONG.items()
    for where, beside in (("", ()), (" by the custom loop", OWN))
]
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)


@pytest.mark.slow
@pytest.mark.parametrize("beside", [(), OWN], ids=["generate", "own"])
@pytest.mark.parametrize("manner", WRONG)
def test_a_prompt_of_other_tokens_than_were_asked_for_turns_the_row_without_padding_too(
    manner: str, beside: tuple[tuple[str, str], ...]
) -> None:
    """Of that arm alone: the other one reads it as it is."""
    arm = dict(beside)
    assert (row := row_of_the_shapes(run_of(arm, llama()))).status == "off", row
    with WRONG[manner]():
        row = row_of_the_shapes(run_of(arm, llama()))
    assert row.status in ("partial", "failed"), row


def row_of_the_shapes(run: Run) -> Evidence:
    (row,) = (row for row in run.ledger("A") if row.finding.axis == "shapes")
    return row
