"""Which ids captured passes over a prompt read: what lies where the embedding read while one was captured."""

from typing import Any

import pytest
import torch

from backend.counts import RunCounts
from backend.worker.prove.captured_reads import CapturedReads
from tests.support.tiny_models import tiny

PROMPT = torch.tensor([[5, 6, 7], [8, 9, 10]])


@pytest.fixture
def model() -> Any:
    return tiny("llama")


def read(seen: CapturedReads, model: Any, graph: int, *parts: Any) -> None:
    seen.begin_capture(graph)
    for ids in parts:
        model(ids)
    seen.end_capture()


def test_what_lies_there_when_it_is_asked_is_what_the_last_replay_read(model: Any) -> None:
    seen, lies = CapturedReads(model), torch.zeros_like(PROMPT)
    read(seen, model, 1, lies)
    assert seen.received is None and seen.counts(PROMPT) == RunCounts(), "captured, and not replayed"
    lies.copy_(PROMPT)
    seen.replayed(1)
    assert torch.equal(seen.received, PROMPT)
    assert seen.counts(PROMPT) == RunCounts(prompt_replays=1, replayed_positions=3, same_replayed_positions=3)
    lies[1, 2] = 0
    assert seen.counts(PROMPT) == RunCounts(prompt_replays=1, replayed_positions=3, same_replayed_positions=2)
    seen.begin()
    assert seen.received is None


def test_several_replays_read_one_after_the_other(model: Any) -> None:
    seen = CapturedReads(model)
    read(seen, model, 1, PROMPT[:, :2])
    read(seen, model, 2, PROMPT[:, 2:])
    seen.replayed(1)
    seen.replayed(2)
    assert seen.counts(PROMPT) == RunCounts(prompt_replays=2, replayed_positions=3, same_replayed_positions=3)
    seen.replayed(2)
    assert seen.counts(PROMPT) == RunCounts(prompt_replays=3, replayed_positions=4, same_replayed_positions=0)


def test_a_graph_without_the_model_or_of_other_rows_read_no_prompt(model: Any) -> None:
    seen = CapturedReads(model)
    read(seen, model, 1)
    seen.replayed(1)
    assert seen.received is None
    read(seen, model, 1, PROMPT)
    read(seen, model, 2, PROMPT[:1])
    seen.replayed(2)
    assert seen.received is None


def test_nothing_watches_the_model_but_during_a_capture(model: Any) -> None:
    seen = CapturedReads(model)
    read(seen, model, 1, PROMPT)
    assert not model.get_input_embeddings()._forward_pre_hooks
    model(PROMPT)
    seen.replayed(1)
    assert seen.counts(PROMPT).replayed_positions == 3
    seen.end_capture()
    CapturedReads(torch.nn.Linear(1, 1)).begin_capture(1)  # it names no embedding
