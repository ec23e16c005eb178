"""A run whose scores become NaN or infinite fails on a GPU too, captured, compiled and in kernels."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from tests.support.local_worker import LocalWorker
from tests.support.worker import SENTENCE, plan_of
from tokendyno.backend.messages import Finished, Generate
from tokendyno.backend.worker.measure.finite import NotFinite

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore:The CUDA Graph is empty"),  # what counts the steps splits compiled code
]

MODEL = "random:SmolLM2-135M-Instruct"
CAPTURED = {"cache": "static", "loop": "own", "cuda_graphs": "manual"}
KERNELS = CAPTURED | {"kernels": "local", "projections": "fused"}
WAYS: list[tuple[dict[str, str], float]] = [
    ({}, 0.0),
    ({}, 1.0),
    (CAPTURED, 0.0),
    (CAPTURED, 1.0),
    (KERNELS, 0.0),
    ({"cache": "static", "compile": "reduce-overhead"}, 0.0),
]
BROKEN, NEW = 20, 32


@contextmanager
def broken(worker: LocalWorker, value: float) -> Iterator[None]:
    """The logit of one token is `value` from one step on; the device counts them, so that graphs count too."""
    head = worker.model.model.lm_head
    step = torch.zeros((), device=head.weight.device)

    def spoil(_: object, __: object, logits: torch.Tensor) -> torch.Tensor:
        one = torch.where(step >= BROKEN, value, 0.0).to(logits.dtype)
        step.add_(1)
        logits[..., 77] += one
        return logits

    handle = head.register_forward_hook(spoil)
    try:
        yield
    finally:
        handle.remove()


def job(ways: dict[str, str], temperature: float) -> Generate:
    return Generate(
        plan_of(MODEL, **ways), SENTENCE, 0, NEW, 1, temperature, 0, ignore_eos=True, warmup=False, prove=False
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(("ways", "temperature"), WAYS)
def test_a_broken_score_fails_the_run_unless_it_only_rules_a_token_out(
    ways: dict[str, str], temperature: float, value: float
) -> None:
    worker = LocalWorker(plan_of(MODEL, **ways).load)
    with broken(worker, value):
        if value == -math.inf:
            worker.run(job(ways, temperature))
            return
        with pytest.raises(NotFinite, match=f"are {'infinite' if value > 0 else 'not a number'}"):
            worker.run(job(ways, temperature))
    assert not any(isinstance(event, Finished) for event in worker.events)
