"""Captured passes: which graphs there are, and what a replay reads and leaves.

A CUDA graph needs a GPU (tests/gpu/test_encoder.py); here a replay is the same code once more, on the same tensors.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tokendyno.backend.worker.loop import passes
from tokendyno.backend.worker.loop.passes import CapturedPasses, without_idle_mask


class Captures:
    """In place of capture: how often, with which pools, and where a replay's tensors lay."""

    def __init__(self) -> None:
        self.pools: list[Any] = []
        self.replays = 0

    def __call__(self, step: Callable[[], None], rewind: Callable[[], None], pool: Any = None) -> Callable[[], None]:
        self.pools.append(pool)
        rewind()
        step()

        def replay() -> None:
            self.replays += 1
            step()

        return replay


@pytest.fixture
def captures(monkeypatch: pytest.MonkeyPatch) -> Captures:
    made = Captures()
    monkeypatch.setattr(passes, "capture", made)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", object)
    return made


def test_each_shape_is_captured_once_and_all_share_a_pool(captures: Captures) -> None:
    doubled = CapturedPasses(lambda ids, mask: 2 * ids * mask)
    for tokens in (4, 6, 4, 6, 6):
        ids = torch.arange(tokens)[None]
        assert torch.equal(doubled(ids=ids, mask=torch.ones_like(ids)), 2 * ids)
    assert captures.replays == 5 and len(captures.pools) == 2
    assert captures.pools[0] is captures.pools[1] is not None
    doubled(ids=torch.ones(2, 4), mask=torch.ones(2, 4))
    assert len(captures.pools) == 3, "another batch is another shape"
    other = CapturedPasses(lambda ids: ids)
    other(ids=torch.ones(1))
    assert captures.pools[-1] is not captures.pools[0], "what else is captured may run in between"


def test_a_replay_reads_this_calls_inputs_where_the_first_ones_were(captures: Captures) -> None:
    seen: list[int] = []

    def summed(ids: Any) -> Any:
        seen.append(ids.data_ptr())
        return ids.sum(-1)

    captured = CapturedPasses(summed)
    first = torch.tensor([[1, 2]])
    assert captured(ids=first).tolist() == [3]
    assert captured(ids=torch.tensor([[5, 6]])).tolist() == [11]
    assert first.tolist() == [[1, 2]], "a caller's tensors are read, never kept"
    assert len(set(seen)) == 1 and seen[0] != first.data_ptr()


def test_inputs_by_other_names_are_another_pass(captures: Captures) -> None:
    both = CapturedPasses(lambda ids, mask=None: ids if mask is None else ids * mask)
    ids = torch.tensor([[3, 4]])
    assert both(ids=ids).tolist() == [[3, 4]]
    assert both(ids=ids, mask=torch.tensor([[1, 0]])).tolist() == [[3, 0]]
    assert len(captures.pools) == 2


@pytest.mark.parametrize(("mask", "kept"), [([[1, 1], [1, 1]], False), ([[1, 1], [1, 0]], True), ([[0, 1]], True)])
def test_only_a_mask_that_hides_something_is_given_to_the_model(mask: list[list[int]], kept: bool) -> None:
    inputs = {"input_ids": torch.ones(len(mask), 2), "attention_mask": torch.tensor(mask)}
    assert set(without_idle_mask(inputs)) == ({"input_ids", "attention_mask"} if kept else {"input_ids"})
    assert len(inputs) == 2
