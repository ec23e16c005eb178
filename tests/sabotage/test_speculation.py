"""speculation: prompt lookup that is not asked for, or proposes nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from transformers.generation.candidate_generator import PromptLookupCandidateGenerator
from transformers.generation.utils import GenerationMixin

from tests.sabotage.saboteur import table, tests_of

TWICE = "Pip has a red ball. Tim has a blue ball. Pip has a red ball. Tim has a"


@contextmanager
def removed() -> Iterator[None]:
    """`generate` decodes greedily, as if nothing had been asked for."""
    original = GenerationMixin.generate

    def generate(self: Any, *args: Any, generation_config: Any = None, **kwargs: Any) -> Any:
        generation_config.prompt_lookup_num_tokens = None
        return original(self, *args, generation_config=generation_config, **kwargs)

    with mock.patch.object(GenerationMixin, "generate", generate):
        yield


def silent() -> Any:
    """Draft tokens are looked up, and never proposed."""
    return mock.patch.object(PromptLookupCandidateGenerator, "get_candidates", lambda self, ids, **kwargs: (ids, None))


MANNERS = {
    "removed": removed,
    "nothing is proposed": silent,
}
SABOTEURS = table("speculation", {"prompt-lookup": MANNERS}, model="pocket", prompt=TWICE, max_new_tokens=24)
test_sabotage_turns_a_row, test_the_control_is_verified = tests_of(SABOTEURS)
