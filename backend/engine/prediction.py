"""What is predicted for an arm once the length of its prompt is known: KV cache, memory, roofline bound."""

from dataclasses import replace
from typing import Literal

from tokendyno.backend.arms.check import Checked
from tokendyno.backend.hardware import Machine, peak_rates
from tokendyno.backend.hardware.peak_rates import PeakRates
from tokendyno.backend.messages import Started
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.predict import roofline
from tokendyno.backend.predict.kv import kv_polyline
from tokendyno.backend.predict.memory import peak_bytes
from tokendyno.backend.predict.parallel import shard
from tokendyno.backend.predict.roofline import Bound, bound, bound_points, prefill_bound
from tokendyno.backend.predict.setup import Setup, setup_of
from tokendyno.backend.predict.shape import Shape
from tokendyno.backend.runs.records import Predicted, PrefillBound, RooflinePoint, StepReads


def predict(
    arm: str, checked: Checked, facts: ModelFacts, machine: Machine, started: Started, copies: bool = True
) -> Predicted:
    """The prediction for the run that `started` describes, from the prompt to the last token but one.

    copies: the texts of its batch are alike, as nothing is drawn
    """
    if checked.plan.generate.batch.continuous:
        return Predicted(arm, [], [], "steps of many requests differ", "", checked.memory.by_part())
    setup = replace(setup_of(checked.plan, machine), max_places=started.places, alike=copies)
    first, last = started.prompt_tokens, started.prompt_tokens + started.max_new_tokens - 1
    kv = []
    if facts.kind == "decoder":
        rank = shard(facts, setup.tensor_parallel, setup.expert_parallel)
        kv = list(kv_polyline(rank, setup.cache, first, last, started.batch_size, checked.itemsize, started.places))
    else:
        first = last = started.prompt_tokens
    memory = peak_bytes(Shape(facts, setup, started.prompt_tokens, started.max_new_tokens, started.batch_size))
    rates = peak_rates.of_machine(machine, facts.dtype if setup.dtype == "auto" else setup.dtype)
    begin = min(first + 1, last) if facts.kind == "decoder" else first  # token 0 is the prefill
    weights, cached = roofline.bytes_read(facts, setup, begin, started.batch_size)
    if rates is None:
        return Predicted(arm, kv, [], roofline.UNKNOWN, "", memory.by_part(), StepReads(weights, cached))
    reads = StepReads(weights, cached, rates.bandwidth_bytes_per_s, rates.source)
    bounds = [RooflinePoint(*at) for at in bound_points(facts, setup, begin, last, started.batch_size, rates)]
    step = bound(facts, setup, begin, started.batch_size, rates)
    work = roofline.work(step, rates)
    if checked.plan.generate.prompt_lookup:
        work += " for a step of one token: speculation can beat it"
    if checked.plan.load.parallel.devices > 1:
        work += " on GPUs that work one after the other"
    return Predicted(
        arm,
        kv,
        bounds,
        roofline.basis(step, rates),
        work,
        memory.by_part(),
        reads,
        _exchanges(step),
        _prefill(checked, facts, setup, started, rates),
    )


def _prefill(
    checked: Checked, facts: ModelFacts, setup: Setup, started: Started, rates: PeakRates
) -> PrefillBound | None:
    """Of a single prompt: those of many requests differ."""
    if checked.plan.generate.batch.kind != "off":
        return None
    copies = replace(setup, alike=True)  # whatever is drawn after them
    found = prefill_bound(facts, copies, started.prompt_tokens, started.batch_size, rates)
    if found is None:
        return None
    return PrefillBound(
        found.seconds, found.limited_by, f"{roofline.work(found, rates)} at {roofline.basis(found, rates)}"
    )


def _exchanges(step: Bound) -> Literal["", "included", "not counted"]:
    if not step.exchanged_bytes:
        return ""
    return "not counted" if step.exchange_s is None else "included"
