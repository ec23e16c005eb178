"""loop: tokens that come from another loop than the one that was asked for."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch

from tests.sabotage.saboteur import Patch, table, tests_of
from tokendyno.backend.worker.loop.loop import DecodeLoop
from tokendyno.backend.worker.loop.step import Step
from tokendyno.backend.worker.runners import course
from tokendyno.backend.worker.runners.token_loops import OwnLoop


@contextmanager
def removed() -> Iterator[None]:
    """Greedy tokens one by one, the whole text through the model each time."""
    scored = DecodeLoop.scores

    def scores(self: Any) -> Any:
        return torch.zeros(1, 1) if self._step is None else scored(self)  # a loop that took no step has none

    def generate(self: Any, ids: Any, mask: Any, cache: Any, tokens: int, meter: Any, *args: Any, **given: Any) -> Any:
        for _ in range(tokens):
            best = self.model(input_ids=ids, use_cache=False).logits[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, best], 1)
            meter.tell(meter.event(), best[:, 0].tolist())
        return ids

    with mock.patch.object(DecodeLoop, "generate", generate), mock.patch.object(DecodeLoop, "scores", scores):
        yield


def aside(every: int) -> Patch:
    """One step in so many is taken by a bare pass, and not by the loop's own step."""

    @contextmanager
    def broken() -> Iterator[None]:
        original, taken = Step.__call__, [0]

        def step(self: Any) -> None:
            taken[0] += 1
            if taken[0] % every == 0:
                self._advance()
            else:
                original(self)

        with mock.patch.object(Step, "__call__", step):
            yield

    return broken


def the_other_loop() -> Any:
    return mock.patch.object(course, "GenerateCall", OwnLoop)


SABOTEURS = table(
    "loop",
    {
        "own": {"removed": removed, "half of the steps": aside(2), "one step in five": aside(5)},
        "generate": {"the custom loop": the_other_loop},
    },
    {"cache": "static"},
)
test_sabotage_turns_a_row, test_the_control_is_verified = tests_of(SABOTEURS)
