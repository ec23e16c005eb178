"""What is to be expected on a GPU that is not here: bounds and memory of the best arm of each number format, with what
was recorded of it. Nothing is measured."""

import math
from collections.abc import Iterator

import msgspec

from tokendyno.backend.ablation.advise.earlier import earlier_pairs
from tokendyno.backend.ablation.advise.search import Search
from tokendyno.backend.ablation.advise.space import Builder, Candidate
from tokendyno.backend.ablation.steps import arm_text
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.errors import InputError
from tokendyno.backend.hardware.gpu_specs import find_gpu
from tokendyno.backend.recordings.shelf import shipped_firsts
from tokendyno.backend.runs.log import RunLog

OVERHEAD = 6.0
"""How many times its bound a step takes as it comes: eager passes of Llama-3-8B on an H200 took 25.6 ms, bound 3.3."""


class PredictedArm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arm of a number format that is most likely the best.

    format       the choices that change number formats, "" for those of the model
    bound_s      roofline bound of a step, None where the bandwidth is unknown; memory_bytes: predicted peak
    recorded_s   time per token of a shipped recording of this arm on such a GPU, None without one; run: its id
    """

    choices: dict[str, str]
    title: str
    format: str
    bound_s: float | None
    memory_bytes: int
    recorded_s: float | None = None
    run: str = ""


def predicted(builder: Builder, gpu: str, runs: RunLog) -> list[PredictedArm]:
    """One arm for each number format, the best by what is wished for first."""
    space = builder.space
    base = space.base.name
    search = Search(space.seen_as(OVERHEAD * (space.base.bound_s or 0.0), True), earlier_pairs(builder, runs))
    mean, _ = search.expected({base: [0.0]})
    best: dict[str, Candidate] = {}
    for one in space.arms.values():
        held = best.get(one.recipe)
        if held is None or mean[search.index[one.name]] < mean[search.index[held.name]]:
            best[one.recipe] = one

    def least(one: Candidate) -> tuple[float, float]:
        value = one.memory_bytes if space.wish == "memory" else one.bound_s or math.inf
        return float(f"{value:.3g}"), float(mean[search.index[one.name]])

    found = sorted(best.values(), key=least)
    recorded = dict(_recorded(builder, gpu, runs))
    return [
        PredictedArm(
            dict(one.choices),
            one.title,
            one.recipe,
            one.bound_s,
            one.memory_bytes,
            *recorded.get(one.name, (None, "")),
        )
        for one in found
    ]


def _recorded(builder: Builder, gpu: str, runs: RunLog) -> Iterator[tuple[str, tuple[float, str]]]:
    """Arms of shipped recordings of this model on that GPU, with their time per token and run."""
    name, cards = builder.facts.model.removeprefix("random:"), find_gpu(gpu).nvml
    for first in shipped_firsts():
        asked = first.request
        if asked.model.removeprefix("random:") != name or asked.traffic is not None or asked.quality is not None:
            continue
        here = any(part.startswith(card) for part in first.machine.values() for card in cards)
        run = runs.get(first.id) if here else None
        if run is None:
            continue
        for arm in asked.arms:
            try:
                choices = arm_text(dict(make_config(builder.facts.model, arm.choices).choices))
            except InputError:  # a choice that there is no longer
                continue
            if step_s := run.summary(arm.name).latency_mean_s:
                yield choices, (step_s, first.id)
