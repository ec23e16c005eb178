"""What is predicted for an arm: seconds for which it needs its device, and once the length of its prompt is known its
KV cache, memory and roofline bound."""

from dataclasses import replace

from tokendyno.backend.arms.check import Checked, prompt_tokens
from tokendyno.backend.config import Request
from tokendyno.backend.hardware import Machine, peak_rates
from tokendyno.backend.hardware.peak_rates import PeakRates
from tokendyno.backend.messages import Started
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.predict import roofline
from tokendyno.backend.predict.kv import kv_polyline
from tokendyno.backend.predict.memory import peak_bytes
from tokendyno.backend.predict.parallel import shard
from tokendyno.backend.predict.roofline import bound, bound_points, prefill_bound
from tokendyno.backend.predict.setup import Setup, setup_of
from tokendyno.backend.predict.shape import Shape
from tokendyno.backend.predict.weights import resolved_dtype
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
    rates = peak_rates.of_machine(machine, resolved_dtype(facts, setup.dtype))
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
        "" if not step.exchanged_bytes else "not counted" if step.exchange_s is None else "included",
        _prefill(checked, facts, setup, started, rates),
    )


def _prefill(
    checked: Checked, facts: ModelFacts, setup: Setup, started: Started, rates: PeakRates
) -> PrefillBound | None:
    """The bound of the pass over a single prompt; None for many requests, whose prompts differ."""
    if checked.plan.generate.batch.kind != "off":
        return None
    copies = replace(setup, alike=True)  # whatever is drawn after them
    prefill = prefill_bound(facts, copies, started.prompt_tokens, started.batch_size, rates)
    if prefill is None:
        return None
    return PrefillBound(
        prefill.seconds, prefill.limited_by, f"{roofline.work(prefill, rates)} at {roofline.basis(prefill, rates)}"
    )


# --- work and seconds ----------------------------------------------------------------------------


BEGIN_S = 15.0
"""For the start of a process, the proof and what else is not load or steps. Our choice."""

LOAD_BYTES_PER_S = 1e9
LAUNCHED_STEP_S = 0.06
"""A step whose kernels are launched from Python on a slow host: 59 to 76 ms (lab/measurements.md, recordings)."""

ABOVE_BOUND = 4.0
"""How far above the roofline bound a large model's step is taken to be."""


def expected_device_s(request: Request, checked: Checked, facts: ModelFacts, machine: Machine) -> float:
    """Seconds for which one arm needs its device, from its load to its proof: rather too many."""
    work, plan = request.workload, checked.plan
    length = prompt_tokens(work) + work.max_new_tokens
    rates = peak_rates.of_machine(machine, resolved_dtype(facts, plan.load.dtype))
    step_s = LAUNCHED_STEP_S
    if rates is not None:
        bound_s = bound(facts, setup_of(plan, machine), length, work.batch_size, rates).seconds
        step_s = max(step_s, ABOVE_BOUND * bound_s)
    runs = 1 + (work.repeats if len(request.arms) == 1 else 1)  # the warm-up is at most another one
    return BEGIN_S + checked.memory.weights / LOAD_BYTES_PER_S + runs * tokens_of_arm(request) * step_s


def work_of(request: Request) -> int:
    """Tokens that all arms generate in all repeats, one sequence after the other where requests or texts are many."""
    return len(request.arms) * request.workload.repeats * tokens_of_arm(request)


def tokens_of_arm(request: Request) -> int:
    if request.quality is not None:
        return (len(request.quality.texts) + 1) * request.quality.positions
    if request.traffic is None:
        return request.workload.max_new_tokens
    return sum(item.max_new_tokens for item in request.traffic.requests)
