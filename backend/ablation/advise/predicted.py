"""What is to be expected before anything is measured: of arms that shipped recordings hold, and, on a GPU that is not
here, by bounds and memory of the best arm of each number format."""

import math
from collections.abc import Iterator

import msgspec

from tokendyno.backend.ablation.advise.search import Observation, Pair, Search
from tokendyno.backend.ablation.advise.space import Builder, Candidate
from tokendyno.backend.ablation.advise.wishes import Limits
from tokendyno.backend.ablation.journal import Cost
from tokendyno.backend.ablation.steps import arm_text
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.errors import InputError
from tokendyno.backend.hardware.gpu_specs import find_gpu
from tokendyno.backend.models import RANDOM, without
from tokendyno.backend.quality.recipes import worst_recipe
from tokendyno.backend.recordings.recorded_runs import shipped_firsts
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.records import Created

OVERHEAD = 6.0
"""How many times its bound a step takes as it comes: eager passes of Llama-3-8B on an H200 took 25.6 ms, bound 3.3."""

SAME_MODEL, OTHER_MODEL = 0.15, 0.5
"""Standard deviation of the logarithm of a ratio that a recording shows: with the same model, and with another one."""


MORE_BYTES, MORE_NATS = 1.03, 1.1
"""Up to these ratios predicted peaks (off by -1.5% to +5.4%, lab/measurements.md) and costs of number formats are
alike. Our choice."""


class PredictedArm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arm of a number format that is most likely the best.

    format       the choices that change number formats, "" for those of the base
    bound_s      roofline bound of a step, None where the bandwidth is unknown; memory_bytes: predicted peak
    kl_nats      of the number format on a small real model (`quality/recipes.py`), None where it was not read
    recorded_s   time per token of a shipped recording of this arm on such a GPU, None without one; run: its id
    """

    choices: dict[str, str]
    title: str
    format: str
    bound_s: float | None
    memory_bytes: int
    recorded_s: float | None = None
    run: str = ""
    kl_nats: float | None = None


def predicted(builder: Builder, limits: Limits, gpu: str, runs: RunLog) -> list[PredictedArm]:
    """One arm for each number format whose quality is allowed or unknown, the best by what is wished for first, of
    unknown quality last unless any will do; none to which one before it is preferable in memory and quality too."""
    pairs = recorded_pairs(builder, runs)
    same_format = next((arm for arm, _ in _best(builder, limits, pairs) if not arm.recipe), builder.space.base)
    builder.widen(same_format)
    recorded = dict(_recorded(builder, gpu, runs))
    arms = []
    for arm, cost in _best(builder, limits, pairs):
        step_s, run = recorded.get(arm.name, (None, ""))
        kl_nats = cost.kl_nats if cost is not None else None
        choices = dict(arm.choices)
        arms.append(PredictedArm(choices, arm.title, arm.recipe, arm.bound_s, arm.memory_bytes, step_s, run, kl_nats))
    preferable = [arm for at, arm in enumerate(arms) if not any(_as_good(other, arm) for other in arms[:at])]
    return sorted(preferable, key=lambda arm: bool(arm.format) and arm.kl_nats is None and not limits.any_quality)


def _as_good(other: PredictedArm, arm: PredictedArm) -> bool:
    """Whether a number format that comes before another takes no more memory, and is known to cost no more quality."""
    known = other.kl_nats is not None and arm.kl_nats is not None and other.kl_nats <= MORE_NATS * arm.kl_nats
    return other.memory_bytes <= MORE_BYTES * arm.memory_bytes and (known or not other.format)


def _best(builder: Builder, limits: Limits, pairs: list[Pair]) -> list[tuple[Candidate, Cost | None]]:
    """Of each number format that is allowed the most promising arm, with what it costs; the best first."""
    space = builder.space
    search = Search(space.search_arms(OVERHEAD * (space.base.bound_s or 0.0), True), pairs)
    mean = search.posterior([Observation(space.base.name, 0.0)]).mean

    def least(arm: Candidate) -> tuple[float, float]:
        value = f"{arm.memory_bytes:.3g}" if space.wish == "memory" else f"{arm.bound_s or math.inf:.2g}"
        return float(value), float(mean[search.index[arm.name]])

    best: dict[str, Candidate] = {}
    for arm in sorted(space.arms.values(), key=least):
        if limits.allows(recipe_cost(arm.recipe)):
            best.setdefault(arm.recipe, arm)
    return [(arm, recipe_cost(arm.recipe)) for arm in best.values()]


def recipe_cost(recipe: str) -> Cost | None:
    """What number formats cost on a small real model; None where nothing changes, or it was not read."""
    worst = worst_recipe(recipe) if recipe else None
    if worst is None:
        return None
    return Cost(recipe, worst.kl_nats, worst.top1_agreement, worst.perplexity_ratio, worst.cost)


def recorded_pairs(builder: Builder, runs: RunLog) -> list[Pair]:
    """Recorded comparisons, on a machine of this kind, of arms that the space has too, as a first guess of what their
    choices are worth. Only time says something: none for another wish."""
    space, pairs = builder.space, list[Pair]()
    for first, arms in _recordings(builder) if space.wish in ("latency", "throughput") else ():
        known = first.device == builder.machine.device and len(arms) == 2 and all(arm in space.arms for arm in arms)
        run = runs.get(first.id) if known else None
        if run is not None and (comparison := run.snapshot().comparison) is not None:
            deviation = SAME_MODEL if _same_model(first, builder) else OTHER_MODEL
            pairs.append(Pair(arms[0], arms[1], math.log(comparison.ratio), deviation))
    return pairs


def _recorded(builder: Builder, gpu: str, runs: RunLog) -> Iterator[tuple[str, tuple[float, str]]]:
    """Arms of shipped recordings of this model on that GPU, with their time per token and run."""
    cards = find_gpu(gpu).nvml
    for first, arms in _recordings(builder):
        on_gpu = any(part.startswith(card) for part in first.machine.values() for card in cards)
        if not on_gpu or not _same_model(first, builder) or (run := runs.get(first.id)) is None:
            continue
        for name, summary in zip(arms, run.snapshot().summaries.values(), strict=True):
            if step_s := summary.latency_mean_s:
                yield name, (step_s, first.id)


def _recordings(builder: Builder) -> Iterator[tuple[Created, list[str]]]:
    """Shipped recordings of one prompt, each with its arms as they are called for this model."""
    for first in shipped_firsts():
        if first.request.traffic is not None or first.request.quality is not None:
            continue
        try:
            configs = [make_config(builder.facts.model, arm.choices) for arm in first.request.arms]
        except InputError:  # a choice that there is no longer
            continue
        yield first, [arm_text(dict(config.choices)) for config in configs]


def _same_model(first: Created, builder: Builder) -> bool:
    return without(RANDOM, first.request.model) == without(RANDOM, builder.facts.model)
