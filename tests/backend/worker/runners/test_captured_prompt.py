"""What the ledger says of a prompt that a captured pass reads: told by the replays, and by the ids that they found."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import msgspec
import pytest

from tests.sabotage.small_models import llama
from tests.support.local_worker import LocalWorker
from tests.support.replayed_code import replayed_on_a_cpu
from tests.support.worker import SENTENCE, job_of, plan_of
from tokendyno.backend.evidence import Finding
from tokendyno.backend.worker.loop.step import Step

TOKENS = len(SENTENCE)  # a random model's tokenizer makes one of each byte


@pytest.fixture(scope="module")
def worker() -> LocalWorker:
    return LocalWorker(plan_of(llama(), cache="static", loop="own").load)


@pytest.fixture
def captured(worker: LocalWorker, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Finding]:
    """Runs once more and returns the row of `prefill`."""
    worker.runner = None
    replayed_on_a_cpu(monkeypatch, worker.model.model, lambda: worker.runner._caches._kept[1])

    def run(graphs: bool = True, **more: Any) -> Finding:
        plan = plan_of(llama(), cache="static", loop="own", shapes=more.pop("shapes", "exact"))
        made = msgspec.structs.replace(plan.generate, cuda_graphs="manual", prefill_graphs=graphs)
        plan = msgspec.structs.replace(plan, generate=made)
        found = worker.run(job_of(plan, **{"max_new_tokens": 5, "warmup": True, "prove": True} | more)).findings
        return next(one for one in found if one.axis == "prefill")

    return run


def test_the_prompts_positions_are_counted_where_the_replay_finds_their_ids(captured: Callable[..., Finding]) -> None:
    row = captured(batch_size=3)
    assert (row.effective, row.reached, row.expected) == ("captured", 1, 1)
    assert f"1 replay read the {TOKENS} positions" in row.proof
    assert captured(graphs=False).effective == "whole"


def test_a_pass_that_no_graph_makes_is_whole(captured: Callable[..., Finding]) -> None:
    with mock.patch.object(Step, "make_prompts", lambda step, *how: None):
        assert captured().effective == "whole"
