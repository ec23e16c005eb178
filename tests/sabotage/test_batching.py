"""Batches of one row, padding that is not masked, layers that write into no page, settings that are dropped."""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import pytest
from transformers import ContinuousBatchingConfig
from transformers.generation.continuous_batching.cache import PagedAttentionCache

from backend.traffic.draw import Draw
from backend.worker.runners import choice, continuous, static_batch
from tests.sabotage.ledger_of import ledger
from tests.sabotage.saboteur import Sabotage, tests_of
from tests.sabotage.test_tokens import without_mlps

WORK = (("traffic", (Draw(6, (30, 60), (3, 9)), 1, 3)),)
LONG = (("traffic", (Draw(5, (60, 90), (3, 6)), 1, 3)),)  # three prompts do not fit into a step of 128 tokens
STATIC, CONTINUOUS = (("batching", "static"),), (("batching", "continuous"),)


def _chosen(how: Callable[[Any, list[Any]], list[Any]]) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: mock.patch.object(static_batch, "choose", how)


def _unmasked() -> AbstractContextManager[Any]:
    plain = static_batch.StaticRunner._task

    def task(self: Any, job: Any, batch: list[Any]) -> Any:
        found = plain(self, job, batch)
        found.prompt.mask[:] = 1
        return found

    return mock.patch.object(static_batch.StaticRunner, "_task", task)


def _layers_without_pages() -> AbstractContextManager[Any]:
    plain = PagedAttentionCache.update

    def update(self: Any, key_states: Any, value_states: Any, layer_idx: int, kwargs: Any) -> Any:
        if layer_idx:
            return plain(self, key_states, value_states, layer_idx, kwargs)
        return plain(self, key_states, value_states, 2, kwargs)  # those of another layer of its kind

    return mock.patch.object(PagedAttentionCache, "update", update)


def _without(**settings: Any) -> Callable[[], AbstractContextManager[Any]]:
    """Continuous batching that is set up with other settings than planned."""

    @functools.wraps(ContinuousBatchingConfig)
    def config(**given: Any) -> Any:
        return ContinuousBatchingConfig(**given | settings)

    return lambda: mock.patch.object(continuous, "ContinuousBatchingConfig", config)


SCHEDULED = (*CONTINUOUS, ("batch_tokens", "128"))
SABOTEURS = [
    Sabotage("batching", "static", "one row a batch", _chosen(lambda job, here: here[:1]), (), "pocket", WORK),
    Sabotage("batching", "static", "padding is not masked", _unmasked, (), "pocket", WORK),
    Sabotage("batching", "static", "padding is not masked", _unmasked, (("cache", "static"),), "pocket", WORK),
    Sabotage("batching", "continuous", "static batches instead",
             lambda: mock.patch.object(choice, "ContinuousRunner", static_batch.StaticRunner), (), "pocket", WORK),
    Sabotage("batching", "continuous", "a layer uses the pages of another", _layers_without_pages, (), "pocket", WORK),
    Sabotage("batch_order", "arrival", "the last come first", _chosen(lambda job, here: here[::-1][:3]), STATIC,
             "pocket", WORK),
    Sabotage("batch_order", "sorted", "not sorted", _chosen(lambda job, here: here[:3]), STATIC, "pocket", WORK),
    Sabotage("batch_size", "2", "one row a batch", _chosen(lambda job, here: here[:1]), STATIC, "pocket", WORK),
    Sabotage("batch_size", "2", "no limit", _chosen(lambda job, here: here), STATIC, "pocket", WORK),
    Sabotage("batch_size", "2", "no limit", _without(max_requests_per_batch=6), CONTINUOUS, "pocket", WORK),
    Sabotage("batch_size", "auto", "one row a batch", _chosen(lambda job, here: here[:1]), STATIC, "pocket", WORK),
    Sabotage("page_size", "256", "smaller pages", _without(page_size=16), CONTINUOUS, "pocket", WORK),
    Sabotage("page_size", "16", "larger pages", _without(page_size=256), CONTINUOUS, "pocket", WORK),
    Sabotage("batch_tokens", "128", "no budget", _without(max_batch_tokens=1024), CONTINUOUS, "pocket", LONG),
    Sabotage("scheduler", "fifo", "the other scheduler", _without(scheduler_type="prefill_first"), SCHEDULED, "pocket",
             LONG),
    Sabotage("scheduler", "prefill_first", "the other scheduler", _without(scheduler_type="fifo"), SCHEDULED, "pocket",
             LONG),
]  # fmt: skip

REASONS: dict[tuple[str, str], str] = (
    {("page_size", size): "As page_size=16, with another number." for size in ("32", "64", "128")}
    | {
        ("batch_size", size): "As batch_size=2, with another number."
        for size in ("1", "4", "8", "16", "32", "64", "128", "256")
    }
    | {
        ("batch_tokens", tokens): "As batch_tokens=128, with another number."
        for tokens in ("256", "512", "1024", "2048", "4096", "8192")
    }
)

test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("batching", "runner"), [("static", static_batch.StaticRunner), ("continuous", continuous.ContinuousRunner)]
)
def test_mixtures_that_are_left_out_while_requests_are_served_turn_their_row(batching: str, runner: Any) -> None:
    """They are back before anything is proved."""
    plain, work = runner._serve, dict[str, Any](WORK)

    def serve(self: Any, task: Any, log: Any) -> None:
        mend = without_mlps(self.model.model)
        try:
            plain(self, task, log)
        finally:
            mend()

    with mock.patch.object(runner, "_serve", serve):
        row = ledger({"batching": batching}, **work)["experts"]
    assert row.status == "partial" and "4 were something else in the measured run" in row.finding.proof
    intact = ledger({"batching": batching}, **work)
    assert {intact[axis].status for axis in ("experts", "attention", "dtype", "batching")} == {"verified"}
