"""Every choice that runs on this GPU: its exported script generates the worker's greedy tokens."""

from collections.abc import Iterator

import pytest

from tests.support.scripts import CHOICES, LIMIT_S, Scripts, same_tokens_with
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.executors import open_bench
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations import Choice, Optimization

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = open_bench(None)
    made.start(prewarm=1)
    yield made
    made.close()


@pytest.mark.timeout(2 * LIMIT_S)
@pytest.mark.parametrize(("axis", "choice"), CHOICES, ids=[f"{a.name}={c.name}" for a, c in CHOICES])
def test_a_choice_as_a_script_makes_the_workers_tokens(
    axis: Optimization, choice: Choice, bench: Bench, models: list[ModelFacts], scripts: Scripts
) -> None:
    same_tokens_with(axis, choice, models, bench, scripts)
