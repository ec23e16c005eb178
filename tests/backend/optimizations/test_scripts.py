"""Every choice that runs on this machine, as a script beside the worker: the same greedy tokens."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend.config import Workload
from backend.engine import Bench
from backend.models import PRESETS_DIR, ModelFacts, resolve
from backend.optimizations import Choice, Optimization
from tests.scripts import CHOICES, LIMIT_S, Scripts, same_tokens, same_tokens_with

pytestmark = pytest.mark.slow
RANDOM = [{}, {"dtype": "float32"}, {"quantization": "bnb-int8"}, {"quantization": "mxfp4-dequantized"}]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """Without the Hub: what must be fetched from there is refused, and skipped."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        made = Bench(None)
        made.start(prewarm=1)
        yield made
        made.close()


@pytest.mark.timeout(2 * LIMIT_S)
@pytest.mark.parametrize(("axis", "choice"), CHOICES, ids=[f"{a.name}={c.name}" for a, c in CHOICES])
def test_a_choice_as_a_script_makes_the_workers_tokens(
    axis: Optimization, choice: Choice, bench: Bench, models: list[ModelFacts], scripts: Scripts
) -> None:
    same_tokens_with(axis, choice, models, bench, scripts)


@pytest.mark.parametrize("arm", [{}, {"cache": "static", "loop": "own"}, {"shapes": "buckets"}], ids=str)
def test_a_script_ends_where_the_text_ends(arm: dict[str, str], bench: Bench, scripts: Scripts) -> None:
    work = Workload("Grandmother gave Anna a small seed.", max_new_tokens=300, batch_size=2)
    ids = same_tokens("text-ends", resolve("pocket"), arm, bench, scripts, work)
    assert len(ids) < 300 and ids[-1] == 0


@pytest.mark.parametrize("arm", RANDOM, ids=str)
def test_random_weights_are_the_same_in_a_script(
    arm: dict[str, str], tmp_path: Path, bench: Bench, scripts: Scripts
) -> None:
    """At pocket's shape, drawn wider than usual: else one id follows another for ever."""
    config = json.loads((PRESETS_DIR / "models" / "pocket" / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"initializer_range": 0.2}))
    ids = same_tokens("random-weights", resolve(f"random:{tmp_path}"), arm, bench, scripts)
    assert len(set(ids)) > 3
