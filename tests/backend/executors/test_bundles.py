"""The named bundles run on this CPU, and no row of their ledgers is amber but where a fallback was announced."""

from collections.abc import Callable

import pytest

from tests.sabotage.saboteur import run_of
from tests.sabotage.small_models import llama
from tests.support.ledger import SOUND
from tests.support.worker import SENTENCE
from tokendyno.backend.arms.bundles import bundle, written_arm
from tokendyno.backend.arms.presets import arm_presets
from tokendyno.backend.config import Workload
from tokendyno.backend.models import resolve

NAMES = [preset.name for preset in arm_presets() if preset.bundle]
COMPILES = ("guide-four",)
WORK = Workload(prompt=SENTENCE, max_new_tokens=8, ignore_eos=True)
MODELS: dict[str, Callable[[], str]] = {"pocket": lambda: "pocket", "llama": llama}
TIERS = [
    pytest.param(
        name,
        model,
        marks=pytest.mark.full if name in COMPILES or model == "llama" else pytest.mark.slow,
        id=f"{name}-{model}",
    )
    for name in NAMES
    for model in MODELS
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("name", "model"), TIERS)
def test_a_bundle_is_in_effect_on_a_cpu(name: str, model: str) -> None:
    """Windows, sinks and a mixture of experts; and none of these."""
    source, preset = MODELS[model](), bundle(name)
    assert preset is not None
    arm = written_arm("A", preset.name, source, WORK, lambda: resolve(source))
    rows = run_of(arm.choices, source).snapshot().ledgers["A"]
    assert not [row for row in rows if row.status not in (*SOUND, "fallback")]
    announced = [row.finding.axis for row in rows if row.fell_back]
    assert [row.finding.axis for row in rows if row.status == "fallback"] == announced
