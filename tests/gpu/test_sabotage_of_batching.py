"""Steps of continuous batching that are neither captured nor prepared ahead, although they should be."""

import functools
from typing import Any
from unittest import mock

import pytest
from transformers import ContinuousBatchingConfig

from backend.traffic.draw import Draw
from backend.worker.runners import continuous
from tests.sabotage.saboteur import Sabotage, tests_of

pytestmark = pytest.mark.gpu
WORK = (("traffic", (Draw(6, (30, 60), (3, 9)), 1, 3)),)
CONTINUOUS = (("batching", "continuous"),)


def _without(setting: str) -> Any:
    @functools.wraps(ContinuousBatchingConfig)
    def config(**given: Any) -> Any:
        return ContinuousBatchingConfig(**given | {setting: False})

    return lambda: mock.patch.object(continuous, "ContinuousBatchingConfig", config)


SABOTEURS = [
    Sabotage("async_batching", "on", "one step after the other", _without("use_async_batching"), CONTINUOUS, "pocket",
             WORK, tier="gpu"),
    Sabotage("batch_graphs", "on", "no graphs", _without("use_cuda_graph"), CONTINUOUS, "pocket", WORK, tier="gpu"),
]  # fmt: skip

test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)
