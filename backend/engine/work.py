"""How much a request asks for: the tokens that it generates, and the seconds for which an arm needs its device."""

from tokendyno.backend.arms.check import Checked, prompt_tokens
from tokendyno.backend.config import Request
from tokendyno.backend.hardware import Machine, peak_rates
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.predict.roofline import bound
from tokendyno.backend.predict.setup import setup_of

BEGIN_S = 15.0
"""For the start of a process, the proof and what else is not load or steps. Our choice."""

LOAD_BYTES_PER_S = 1e9
LAUNCHED_STEP_S = 0.06
"""A step whose kernels are launched from Python on a slow host: 59 to 76 ms (lab/measurements.md, recordings)."""

ABOVE_BOUND = 4.0
"""How far above the roofline bound a large model's step is taken to be."""


def work_of(request: Request) -> int:
    """Tokens that all arms generate in all repeats, one sequence after the other where requests or texts are many."""
    return len(request.arms) * request.workload.repeats * _each(request)


def expected_device_s(request: Request, checked: Checked, facts: ModelFacts, machine: Machine) -> float:
    """Seconds for which one arm needs its device, from its load to its proof: rather too many."""
    work, plan = request.workload, checked.plan
    length = prompt_tokens(work) + work.max_new_tokens
    rates = peak_rates.of_machine(machine, facts.dtype if plan.load.dtype == "auto" else plan.load.dtype)
    step_s = LAUNCHED_STEP_S
    if rates is not None:
        bound_s = bound(facts, setup_of(plan, machine), length, work.batch_size, rates).seconds
        step_s = max(step_s, ABOVE_BOUND * bound_s)
    runs = 1 + (work.repeats if len(request.arms) == 1 else 1)  # the warm-up is at most another one
    return BEGIN_S + checked.memory.weights / LOAD_BYTES_PER_S + runs * _each(request) * step_s


def _each(request: Request) -> int:
    """Tokens of one arm in one repeat."""
    if request.quality is not None:
        return (len(request.quality.texts) + 1) * request.quality.positions
    if request.traffic is None:
        return request.workload.max_new_tokens
    return sum(one.max_new_tokens for one in request.traffic.requests)
