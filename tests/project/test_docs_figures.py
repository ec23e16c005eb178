"""Figures in README and docs/ that the code decides are those of the code."""

import pytest

from backend.ablation.bootstrap import RESAMPLES
from backend.ablation.steps import MAX_CHANGES
from backend.ablation.sweep import MAX_POINTS
from backend.counter.__main__ import CPU_SECONDS, ROOM_BYTES
from backend.engine.bench import RUN_ID_BYTES
from backend.optimizations.axes.speculation import LOOKUP_TOKENS
from backend.optimizations.conditions import CLEARLY_SLOWER
from backend.paths import ROOT
from backend.runs.retention import AGES_AFTER_S
from backend.runs.summary import LAUNCH_BOUND_SHARE, NOISY_CV
from backend.views.quality import ROUNDING_AGREEMENT, ROUNDING_NATS, SMALL_NATS, SMALL_PERPLEXITY
from ui.gate.connections import REQUEST_S
from ui.gate.visitors import LOGIN_S

IN_WORDS = {7: "seven", 10: "ten"}
SAID = [
    ("axes", f"at least {CLEARLY_SLOWER:g} times as long in bfloat16"),
    ("axes", f"{LOOKUP_TOKENS} draft tokens"),
    ("cli", f"the changes, 1 to {MAX_CHANGES}, in order"),
    ("cli", f"at most {MAX_POINTS} points"),
    ("fit", f"at most {CPU_SECONDS} s of a processor and {ROOM_BYTES >> 30} GiB"),
    ("hosting", f"{8 * RUN_ID_BYTES} random bits"),
    ("hosting", f"A login lasts {IN_WORDS[LOGIN_S // 86_400]} days at most"),
    ("hosting", f"asks for nothing within {REQUEST_S:g} s is closed"),
    ("metrics", f"95%, {RESAMPLES} resamples"),
    ("metrics", f"Below {LAUNCH_BOUND_SHARE:.0%} the arm is called launch-bound"),
    ("metrics", f"differ by more than {NOISY_CV:.0%} is called noisy"),
    ("metrics", f"`rounding` up to {ROUNDING_NATS:g} nats and from {ROUNDING_AGREEMENT:.0%} agreement"),
    ("metrics", f"`small` up to {SMALL_NATS:g} nats"),
    ("metrics", f"the perplexity ratio reaches below {SMALL_PERPLEXITY:g}"),
    ("settings", f"the app has run for {IN_WORDS[int(AGES_AFTER_S // 60)]} minutes"),
]


@pytest.mark.parametrize(("page", "text"), SAID)
def test_a_figure_is_that_of_the_code(page: str, text: str) -> None:
    assert text in " ".join((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8").split())
