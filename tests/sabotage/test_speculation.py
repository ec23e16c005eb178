"""Prompt lookup that proposes nothing, or only sometimes."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from transformers.generation.candidate_generator import PromptLookupCandidateGenerator
from transformers.generation.utils import GenerationMixin

from tests.sabotage.damage import model_changed
from tests.sabotage.saboteur import Sabotage, tests_of
from tests.sabotage.test_tokens import another_seed

UNLIKELY = 7
TWICE = "Pip has a red ball. Tim has a blue ball. Pip has a red ball. Tim has a"


@contextlib.contextmanager
def _removed() -> Iterator[None]:
    """`generate` decodes greedily, as if nothing had been asked for."""
    plain = GenerationMixin.generate

    def generate(self: Any, *args: Any, generation_config: Any = None, **more: Any) -> Any:
        generation_config.prompt_lookup_num_tokens = None
        return plain(self, *args, generation_config=generation_config, **more)

    with mock.patch.object(GenerationMixin, "generate", generate):
        yield


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Draft tokens are looked up, and never proposed."""

    def get_candidates(self: Any, input_ids: Any, **more: Any) -> Any:
        return input_ids, None

    with mock.patch.object(PromptLookupCandidateGenerator, "get_candidates", get_candidates):
        yield


@contextlib.contextmanager
def _hopeless() -> Iterator[None]:
    """The draft tokens are not those that were looked up, and none is accepted."""
    plain = PromptLookupCandidateGenerator.get_candidates

    def get_candidates(self: Any, input_ids: Any, **more: Any) -> Any:
        found, *rest = plain(self, input_ids, **more)
        found = found.clone()
        found[:, input_ids.shape[1] :] = UNLIKELY
        return found, *rest

    with mock.patch.object(PromptLookupCandidateGenerator, "get_candidates", get_candidates):
        yield


@contextlib.contextmanager
def _checked_twice() -> Iterator[None]:
    """The text so far is computed once more beside each verification, which nobody needs."""
    models, plain = list[Any](), PromptLookupCandidateGenerator.get_candidates

    def get_candidates(self: Any, input_ids: Any, **more: Any) -> Any:
        models[-1].model(input_ids, use_cache=False)
        return plain(self, input_ids, **more)

    with (
        model_changed(models.append),
        mock.patch.object(PromptLookupCandidateGenerator, "get_candidates", get_candidates),
    ):
        yield


@contextlib.contextmanager
def _unchecked() -> Iterator[None]:
    """All draft tokens are taken, whatever the model says of them."""
    plain = torch.Tensor.cumsum

    def cumsum(self: Any, *args: Any, **more: Any) -> Any:
        mismatches = sys._getframe(1).f_code.co_name == "_assisted_decoding"
        return plain(torch.zeros_like(self) if mismatches else self, *args, **more)

    with mock.patch.object(torch.Tensor, "cumsum", cumsum):
        yield


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """A draft token of ten is proposed."""
    plain = PromptLookupCandidateGenerator.__init__

    def begin(self: Any, *args: Any, **more: Any) -> None:
        plain(self, *args, **more)
        self.num_output_tokens = 1

    with mock.patch.object(PromptLookupCandidateGenerator, "__init__", begin):
        yield


@contextlib.contextmanager
def _one_accepted() -> Iterator[None]:
    """Of draft tokens that are right, one is accepted in each step."""
    plain = torch.Tensor.cumsum

    def cumsum(self: Any, *args: Any, **more: Any) -> Any:
        if sys._getframe(1).f_code.co_name == "_assisted_decoding":
            self = self.clone()
            self[:, 1:] = True
        return plain(self, *args, **more)

    with mock.patch.object(torch.Tensor, "cumsum", cumsum):
        yield


WORK = (("prompt", TWICE), ("max_new_tokens", 24))
SABOTEURS = [
    Sabotage("speculation", "prompt-lookup", "removed", _removed, work=WORK, turns_to=("failed",)),
    Sabotage(
        "speculation", "prompt-lookup", "nothing is proposed", _silent, work=WORK,
        turns_to=("no_effect",),
    ),
    Sabotage(
        "speculation", "prompt-lookup", "no draft is accepted", _hopeless, work=WORK, turns_to=("no_effect",),
        tier="full",
    ),
    Sabotage(
        "speculation", "prompt-lookup", "one draft token in place of ten", _one_at_a_time, work=WORK,
        turns_to=("partial",), tier="full",
    ),
    Sabotage(
        "speculation", "prompt-lookup", "each step makes a pass more", _checked_twice, work=WORK,
        turns_to=("partial",), tier="full",
    ),
    Sabotage(
        "speculation", "prompt-lookup", "drafts are taken unchecked", _unchecked, work=WORK, turns_to=("partial",),
        tier="full",
    ),
    Sabotage(
        "speculation", "prompt-lookup", "one right draft in a step is accepted", _one_accepted,
        work=(("prompt", TWICE), ("max_new_tokens", 48)), turns_to=("partial",), tier="full",
    ),
    Sabotage(
        "speculation", "prompt-lookup", "tokens are drawn with another seed", another_seed,
        beside=(("dtype", "float32"),), work=(*WORK, ("temperature", 0.5)), turns_to=("partial",), tier="full",
    ),
]  # fmt: skip
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)
