"""loop: tokens of the measured run that come from another loop than the one that was asked for."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any
from unittest import mock

import torch

from backend.worker.loop.loop import DecodeLoop
from backend.worker.loop.step import Step
from backend.worker.runners import choice as runners
from backend.worker.runners.loop import LoopRunner, UnmeasuredLoop
from tests.sabotage.damage import model_changed
from tests.sabotage.saboteur import Sabotage, tests_of

STATIC = (("cache", "static"),)


def without_the_loop(ids: Any, tokens: int, model: Any, meter: Any) -> Any:
    """Greedy tokens one by one, the whole text through the model each time."""
    for _ in range(tokens):
        best = model(input_ids=ids, use_cache=False).logits[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, best], 1)
        meter.tell(meter.event(), best[:, 0].tolist())
    return ids


def replaced(where: Callable[[Any], bool]) -> Callable[[], AbstractContextManager[None]]:
    """Another loop for the generations that are told to such a meter."""

    @contextmanager
    def broken() -> Iterator[None]:
        real, scored = DecodeLoop.generate, DecodeLoop.scores

        def scores(self: Any) -> Any:
            return torch.zeros(1, 1) if self._step is None else scored(self)  # a loop that took no step has none

        def generate(self: Any, ids: Any, mask: Any, cache: Any, tokens: int, meter: Any, *rest: Any) -> Any:
            if where(meter):
                return without_the_loop(ids, tokens, self._model, meter)
            return real(self, ids, mask, cache, tokens, meter, *rest)

        with mock.patch.object(DecodeLoop, "generate", generate), mock.patch.object(DecodeLoop, "scores", scores):
            yield

    return broken


def aside(where: Callable[[int], bool]) -> Callable[[], AbstractContextManager[None]]:
    """Steps that are taken by a bare pass, and not by the loop's own step."""

    @contextmanager
    def broken() -> Iterator[None]:
        real, taken = Step.__call__, [0]

        def step(self: Any) -> None:
            taken[0] += 1
            if where(taken[0]):
                self._advance()
            else:
                real(self)

        with mock.patch.object(Step, "__call__", step):
            yield

    return broken


@contextmanager
def the_other_runner() -> Iterator[None]:
    with mock.patch.object(runners, "GenerateRunner", LoopRunner):
        yield


def computed_twice() -> AbstractContextManager[None]:
    """Each pass is made once more, without a cache, and thrown away."""

    def double(model: Any) -> None:
        plain = model.forward

        @wraps(plain)
        def forward(*args: Any, **more: Any) -> Any:
            model.model(more["input_ids"], use_cache=False)
            return plain(*args, **more)

        model.forward = forward

    return model_changed(double)


def measured(meter: Any) -> bool:
    return not isinstance(meter, UnmeasuredLoop)


SABOTEURS = [
    Sabotage("loop", "own", "in the measured run alone", replaced(measured), STATIC),
    Sabotage("loop", "own", "in the profile alone", replaced(lambda meter: not measured(meter)), STATIC, tier="full"),
    Sabotage("loop", "own", "removed", replaced(lambda meter: True), STATIC, tier="full"),
    Sabotage("loop", "own", "half of the steps", aside(lambda n: n % 2 == 0), STATIC, tier="full"),
    Sabotage("loop", "own", "one step in five", aside(lambda n: n % 5 == 0), STATIC, tier="full"),
    Sabotage("loop", "generate", "the custom loop", the_other_runner, STATIC),
    Sabotage("loop", "generate", "each pass is made twice", computed_twice, turns_to=("partial",), tier="full"),
]
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)
