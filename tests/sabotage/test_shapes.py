"""shapes: other padding than planned, or none; symbolic sizes that are not."""

from typing import Any
from unittest import mock

import torch

from tests.sabotage.saboteur import Patch, table, tests_of
from tests.sabotage.test_compile import COMPILES, COMPILING, STATIC, forgotten  # noqa: F401
from tokendyno.backend.predict.lengths import rounded
from tokendyno.backend.worker import prompt as prompts
from tokendyno.backend.worker.runners import decode


def not_padded() -> Any:
    return mock.patch.object(decode, "pad", lambda prompt, *_: prompt)


def padded_to_half() -> Any:
    return mock.patch.object(prompts, "rounded", lambda shapes, tokens: rounded(shapes, tokens) // 2)


def fixed_sizes() -> Any:
    original = torch.compile
    return mock.patch.object(torch, "compile", lambda model, **how: original(model, **how | {"dynamic": False}))


PADDING: dict[str, Patch] = {"not padded": not_padded, "to half of the length": padded_to_half}
COMPILED = STATIC | {"compile": "default"}
SABOTEURS = [
    *table("shapes", {"padded": PADDING, "buckets": PADDING}),
    *table("shapes", {"dynamic": {"sizes are not symbols": fixed_sizes}}, COMPILED, tier=COMPILING),
]
test_sabotage_turns_a_row, test_the_control_is_verified = tests_of(SABOTEURS, *COMPILES)
