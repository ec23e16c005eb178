"""Axes of many requests: batches of other sizes, in another order, and settings that are dropped."""

import functools
from collections.abc import Callable
from typing import Any
from unittest import mock

from transformers import ContinuousBatchingConfig

from tests.sabotage.saboteur import Patch, table, tests_of
from tokendyno.backend.traffic.requests import Draw
from tokendyno.backend.worker.runners import continuous, course, static_batch
from tokendyno.backend.worker.runners.token_loops import GenerateCall

REQUESTS = (Draw(6, (30, 60), (3, 9)), 1, 3)
LONG = (Draw(5, (60, 90), (3, 6)), 1, 3)
"""Three prompts do not fit into a step of 128 tokens."""
STATIC, CONTINUOUS = {"batching": "static"}, {"batching": "continuous"}
SCHEDULED = CONTINUOUS | {"batch_tokens": "128"}


def chosen(how: Callable[[list[Any]], list[Any]]) -> Patch:
    """Which of the waiting requests become the next batch."""
    return lambda: mock.patch.object(static_batch, "choose", lambda job, here: how(here))


def set_up_with(**settings: Any) -> Patch:
    """Continuous batching has other settings than planned."""

    @functools.wraps(ContinuousBatchingConfig)
    def config(**kwargs: Any) -> Any:
        return ContinuousBatchingConfig(**kwargs | settings)

    return lambda: mock.patch.object(continuous, "ContinuousBatchingConfig", config)


def other_runner() -> Any:
    return mock.patch.object(
        course, "ContinuousBatches", lambda session: static_batch.StaticBatches(session, GenerateCall(session))
    )


ONE_ROW = {"one row a batch": chosen(lambda here: here[:1])}
NO_LIMIT = {"no limit": chosen(lambda here: here)}
LAST_FIRST = {"the last come first": chosen(lambda here: here[::-1][:3])}
NOT_SORTED = {"not sorted": chosen(lambda here: here[:3])}
SABOTEURS = [
    *table("batching", {"static": ONE_ROW, "continuous": {"static batches instead": other_runner}}, traffic=REQUESTS),
    *table("batch_order", {"arrival": LAST_FIRST, "sorted": NOT_SORTED}, STATIC, traffic=REQUESTS),
    *table("batch_size", {"2": ONE_ROW | NO_LIMIT, "auto": ONE_ROW}, STATIC, traffic=REQUESTS),
    *table("batch_size", {"2": {"no limit": set_up_with(max_requests_per_batch=6)}}, CONTINUOUS, traffic=REQUESTS),
    *table(
        "page_size",
        {"256": {"smaller pages": set_up_with(page_size=16)}, "16": {"larger pages": set_up_with(page_size=256)}},
        CONTINUOUS,
        traffic=REQUESTS,
    ),
    *table("batch_tokens", {"128": {"no budget": set_up_with(max_batch_tokens=1024)}}, CONTINUOUS, traffic=LONG),
    *table(
        "scheduler",
        {
            "fifo": {"the other scheduler": set_up_with(scheduler_type="prefill_first")},
            "prefill_first": {"the other scheduler": set_up_with(scheduler_type="fifo")},
        },
        SCHEDULED,
        traffic=LONG,
    ),
]
test_sabotage_turns_a_row, test_the_control_is_verified = tests_of(SABOTEURS)
