"""What runs have shown before of pairs of arms, as a first guess of what their choices are worth."""

import math
from collections.abc import Iterator

from tokendyno.backend.ablation.advise.search import Pair
from tokendyno.backend.ablation.advise.space import Builder
from tokendyno.backend.ablation.steps import arm_text
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.errors import InputError
from tokendyno.backend.recordings.shelf import shipped_firsts
from tokendyno.backend.runs.log import RunLog

SAME_MODEL, OTHER_MODEL = 0.15, 0.5
"""Standard deviation of the logarithm of a ratio that a recording shows: with the same model, and with another one."""


def earlier_pairs(builder: Builder, runs: RunLog) -> list[Pair]:
    """Recorded comparisons, on a machine of this kind, of arms that the space has too. Only time says something: none
    for another wish."""
    return [*_pairs(builder, runs)] if builder.space.wish in ("latency", "throughput") else []


def _pairs(builder: Builder, runs: RunLog) -> Iterator[Pair]:
    model, space, device = builder.facts.model, builder.space, builder.machine.device
    for first in shipped_firsts():
        asked = first.request
        if first.device != device or len(asked.arms) != 2 or asked.traffic is not None or asked.quality is not None:
            continue
        try:
            a, b = (arm_text(dict(make_config(model, arm.choices).choices)) for arm in asked.arms)
        except InputError:  # a choice that there is no longer
            continue
        run = runs.get(first.id) if a in space.arms and b in space.arms else None
        found = run.comparison() if run is not None else None
        if found is not None:
            alike = asked.model.removeprefix("random:") == model.removeprefix("random:")
            yield Pair(a, b, math.log(found.ratio), SAME_MODEL if alike else OTHER_MODEL)
