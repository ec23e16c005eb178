"""Tokens of a mixture are held against a pass that takes the experts of its steps, those of kernels of our own too."""

from typing import Any
from unittest import mock

import pytest
import torch

from backend.messages import Finished, Generate
from backend.worker.prove.passes import PassCounter
from tests.support.local_worker import LocalWorker
from tests.support.worker import SENTENCE, plan_of

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]

CAPTURED = {"cache": "static", "loop": "own", "cuda_graphs": "manual", "experts": "triton"}
WHOLE = CAPTURED | {"kernels": "local", "projections": "fused"}
PACKED = WHOLE | {"quantization": "mxfp4"}
WAYS: list[dict[str, str]] = [
    {}, {"experts": "batched_mm"}, CAPTURED, WHOLE, PACKED, WHOLE | {"dtype": "float32"},
]  # fmt: skip
NEW = 64


def run(ways: dict[str, str], temperature: float = 0.0, patch: Any = None) -> Finished:
    plan = plan_of("random:pocket" if ways == PACKED else "pocket", **ways)  # trained weights are not in MXFP4
    worker = LocalWorker(plan.load)
    if patch:
        patch(worker.model.model)
    return worker.run(Generate(plan, SENTENCE, 0, NEW, 1, temperature, 0, ignore_eos=True, warmup=False, prove=True))


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("ways", WAYS, ids=lambda ways: ",".join(ways.values()) or "baseline")
def test_every_token_is_one_that_the_model_chooses(ways: dict[str, str], temperature: float) -> None:
    finished = run(ways, temperature)
    assert (finished.extra.checked_tokens, finished.extra.strange_tokens) == (NEW, 0), finished.unchecked


@pytest.mark.parametrize("ways", [CAPTURED, WHOLE])
def test_tokens_that_only_the_measured_run_chose_are_strange(ways: dict[str, str]) -> None:
    """The output head prefers one token, until the measured run ends; after many of these, so does the model."""
    handles: list[Any] = []

    def prefer(model: Any) -> None:
        def preferring(_: object, __: object, logits: torch.Tensor) -> torch.Tensor:
            logits[..., 77] += 50
            return logits

        handles.append(model.lm_head.register_forward_hook(preferring))

    leave = PassCounter.__exit__

    def end(self: Any, *exc: Any) -> None:
        leave(self, *exc)
        handles.pop().remove()

    with mock.patch.object(PassCounter, "__exit__", end):
        finished = run(ways, patch=prefer)
    assert finished.extra.checked_tokens == NEW and (finished.extra.strange_tokens or 0) > NEW / 8, finished.unchecked
