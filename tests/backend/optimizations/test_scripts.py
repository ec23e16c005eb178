"""One script for each part that axes write, beside the worker: the same tokens.

What a script prints is the worker's own source (tests/backend/script/test_definitions.py), so one script a part shows
that the part is called as the worker calls it. On a GPU every choice is run: tests/gpu/test_scripts.py.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.scripts import CHOICES, LIMIT_S, Scripts, same_tokens, same_tokens_with
from tokendyno.backend.config import Workload
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.executors import open_bench
from tokendyno.backend.models import ModelFacts, resolve
from tokendyno.backend.optimizations import Choice, Optimization
from tokendyno.backend.paths import PRESETS

TOGETHER = [
    {"projections": "fused", "quantization": "torchao-int8", "loop": "own", "cache": "static", "kernels": "local"},
    {"cache": "static", "loop": "own", "compile": "default"},
    {"cache": "static", "compile": "default"},  # alone: with a growing cache
]
RANDOM = [{}, {"dtype": "float32"}, {"quantization": "bnb-int8"}, {"quantization": "mxfp4-dequantized"}]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """Without the Hub: what must be fetched from there is refused, and skipped."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        made = open_bench()
        made.start()
        yield made
        made.close()


@pytest.mark.timeout(2 * LIMIT_S)
@pytest.mark.full
@pytest.mark.parametrize(("axis", "choice"), [pytest.param(*one, id=f"{one[0].name}={one[1].name}") for one in CHOICES])
def test_a_choice_as_a_script_makes_the_workers_tokens(
    axis: Optimization, choice: Choice, bench: Bench, models: list[ModelFacts], scripts: Scripts
) -> None:
    same_tokens_with(axis, choice, models, bench, scripts)


@pytest.mark.full
@pytest.mark.timeout(2 * LIMIT_S)
@pytest.mark.parametrize("arm", TOGETHER, ids=str)
def test_parts_that_work_together(
    arm: dict[str, str], bench: Bench, models: list[ModelFacts], scripts: Scripts
) -> None:
    same_tokens("together", models[-1], arm, bench, scripts)


@pytest.mark.slow
def test_the_custom_loop_samples_the_workers_text(bench: Bench, scripts: Scripts) -> None:
    work = Workload("Grandmother gave Anna", max_new_tokens=24, batch_size=2, temperature=1.2, seed=3, top_k=40)
    arm = {"cache": "static", "loop": "own"}
    assert len(set(same_tokens("sampled", resolve("pocket"), arm, bench, scripts, work))) > 3


@pytest.mark.full
@pytest.mark.parametrize("arm", [{"cache": "static", "loop": "own"}, {}, {"shapes": "buckets"}], ids=str)
def test_a_script_ends_where_the_text_ends(arm: dict[str, str], bench: Bench, scripts: Scripts) -> None:
    work = Workload("Grandmother gave Anna a small seed.", max_new_tokens=300, batch_size=2)
    ids = same_tokens("text-ends", resolve("pocket"), arm, bench, scripts, work)
    assert len(ids) < 300 and ids[-1] == 0


@pytest.mark.full
@pytest.mark.parametrize("arm", RANDOM, ids=str)
def test_random_weights_are_the_same_in_a_script(
    arm: dict[str, str], tmp_path: Path, bench: Bench, scripts: Scripts
) -> None:
    """At pocket's shape, drawn wider than usual: else one id follows another for ever."""
    config = json.loads((PRESETS / "models" / "pocket" / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"initializer_range": 0.2}))
    ids = same_tokens("random-weights", resolve(f"random:{tmp_path}"), arm, bench, scripts)
    assert len(set(ids)) > 3
