"""Figures in README and docs/ that the code decides are those of the code."""

import pytest

from tokendyno.backend.ablation.bootstrap import BLOCK, RESAMPLES
from tokendyno.backend.ablation.courses import POSITIONS
from tokendyno.backend.ablation.side_by_side import MAX_LOSSES
from tokendyno.backend.counter.__main__ import ROOM_BYTES
from tokendyno.backend.engine.bench import QUIET_S, RUN_ID_BYTES
from tokendyno.backend.engine.work import ABOVE_BOUND, LAUNCHED_STEP_S
from tokendyno.backend.executors.several_machines import JOIN_WAIT_S
from tokendyno.backend.executors.zero_gpu import CALL_S, IDLE_S
from tokendyno.backend.fit.row import TIGHT
from tokendyno.backend.fit.table import SAVES
from tokendyno.backend.models.counting import CPU_SECONDS
from tokendyno.backend.optimizations.axes.speculation import LOOKUP_TOKENS
from tokendyno.backend.optimizations.conditions import CLEARLY_SLOWER
from tokendyno.backend.paths import ROOT
from tokendyno.backend.predict.memory import CPU_MARGIN
from tokendyno.backend.predict.parallel import SIZES
from tokendyno.backend.runs.history_writer import MAX_WAITING
from tokendyno.backend.runs.retention import AGES_AFTER_S, UNDO_S
from tokendyno.backend.runs.statistics import MIN_SAMPLES
from tokendyno.backend.runs.summary import LAUNCH_BOUND_SHARE, NOISY_CV
from tokendyno.backend.views.memory_check import KEPT_SHARE
from tokendyno.backend.views.quality import ROUNDING_AGREEMENT, ROUNDING_NATS, SMALL_NATS, SMALL_PERPLEXITY
from tokendyno.ui.api import MAX_WAIT_S
from tokendyno.ui.gate.connections import MAX_HEADER_BYTES, REQUEST_S
from tokendyno.ui.gate.sessions import WHOLE_BODY_S
from tokendyno.ui.gate.visitors import LOGIN_S, NAME_SHARE

IN_WORDS = {1: "one", 3: "three", 4: "four", 7: "seven", 10: "ten"}
SAID = [
    ("axes", f"at least {CLEARLY_SLOWER:g} times as long in bfloat16"),
    ("axes", f"{LOOKUP_TOKENS} draft tokens"),
    ("fit", f"A margin below {TIGHT:.0%} is *tight* (on a CPU {CPU_MARGIN:.0%})"),
    ("fit", f"within {CPU_MARGIN:.0%} of the prediction"),
    ("fit", f"caches that save at least {SAVES:.0%}"),
    ("fit", f"would do ({SIZES[0]}, {SIZES[1]} or {SIZES[2]})"),
    ("fit", f"where it exceeds {KEPT_SHARE:.0%} of the peak"),
    ("fit", f"after {QUIET_S:g} quiet seconds"),
    ("fit", f"at most {CPU_SECONDS} s of a processor and {ROOM_BYTES >> 30} GiB"),
    ("machines", f"waits up to {JOIN_WAIT_S:g} s"),
    ("machines", f"{IN_WORDS[MAX_LOSSES]} times at most"),
    ("hosting", f"{8 * RUN_ID_BYTES} random bits"),
    ("hosting", f"A login lasts {IN_WORDS[LOGIN_S // 86_400]} days at most"),
    ("hosting", f"asks for nothing within {REQUEST_S:g} s is closed"),
    ("hosting", f"closed, and so is one whose header exceeds {MAX_HEADER_BYTES >> 10} KiB"),
    ("hosting", f"A body must arrive within {WHOLE_BODY_S:g} s"),
    ("hosting", f"a user name may have {IN_WORDS[NAME_SHARE]} times as many"),
    ("hosting", f"`wait_s` ({MAX_WAIT_S:g} at most)"),
    ("hosting", f"{CALL_S[0]:g} at least and {CALL_S[1]:g} at most"),
    ("hosting", f"{IN_WORDS[int(ABOVE_BOUND)]} times its roofline bound or {1e3 * LAUNCHED_STEP_S:g} ms"),
    ("hosting", f"asked for nothing for {'a second' if IDLE_S == 1 else IDLE_S} is given back"),
    ("metrics", f"blocks of {BLOCK} positions"),
    ("metrics", f"({POSITIONS} positions each)"),
    ("metrics", f"from {MIN_SAMPLES[0.9]} and {MIN_SAMPLES[0.99]} steps on"),
    ("metrics", f"95%, {RESAMPLES} resamples"),
    ("metrics", f"Below {LAUNCH_BOUND_SHARE:.0%} the arm is called launch-bound"),
    ("metrics", f"differ by more than {NOISY_CV:.0%} is called noisy"),
    ("metrics", f"`rounding` up to {ROUNDING_NATS:g} nats and from {ROUNDING_AGREEMENT:.0%} agreement"),
    ("metrics", f"`small` up to {SMALL_NATS:g} nats"),
    ("metrics", f"the perplexity ratio reaches below {SMALL_PERPLEXITY:g}"),
    ("settings", f"had back for {'an hour' if UNDO_S == 3600 else UNDO_S}"),
    ("settings", f"up to {MAX_WAITING:,} of their records wait in memory"),
    ("settings", f"the app has run for {IN_WORDS[int(AGES_AFTER_S // 60)]} minutes"),
]


@pytest.mark.parametrize(("page", "text"), SAID)
def test_a_figure_is_that_of_the_code(page: str, text: str) -> None:
    assert text in " ".join((ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8").split())
