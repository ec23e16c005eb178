"""One row of the table: a combination of choices with the work it is given, its memory, its margin, and where else it
would run."""

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tokendyno.backend.arms.check import Checked, check, needed_bytes
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.errors import InputError
from tokendyno.backend.fit.device import Device, of_gpus, roomy
from tokendyno.backend.hardware import Machine
from tokendyno.backend.hardware.elsewhere import card_machine, stocked
from tokendyno.backend.hardware.gpu_specs import GpuSpec, gpus
from tokendyno.backend.models import ModelFacts, check_loadable
from tokendyno.backend.predict import parallel
from tokendyno.backend.predict.memory import MemoryEstimate, peak_bytes
from tokendyno.backend.predict.roofline import bound
from tokendyno.backend.predict.setup import Setup, setup_of
from tokendyno.backend.predict.shape import Shape
from tokendyno.backend.predict.weights import resolved_dtype
from tokendyno.backend.units import bytes_text


@dataclass(frozen=True, slots=True)
class FitArm:
    """A combination of choices, given one prompt that fills all of the context but one token.

    shared  (tensor_parallel, expert_parallel): GPUs that share the model, also where no choice of `parallel` does it;
            (1, 1): as the choices say
    """

    facts: ModelFacts
    choices: Mapping[str, str]
    context: int
    batch: int
    shared: tuple[int, int] = (1, 1)

    def on(self, machine: Machine) -> Checked:
        """What the rules say on a machine with unlimited memory: whether it fits is worked out here, not by them."""
        work = Workload(prompt_tokens=max(1, self.context - 1), max_new_tokens=1, batch_size=self.batch)
        return check(make_config(self.facts.model, self.choices), self.facts, roomy(machine), work)

    def setup(self, checked: Checked, machine: Machine) -> Setup:
        """The setup that memory and the roofline bound depend on."""
        setup = setup_of(checked.plan, machine)
        tensor, expert = self.shared
        return setup if tensor == 1 else replace(setup, tensor_parallel=tensor, expert_parallel=expert)

    def memory(self, setup: Setup, context: int | None = None) -> MemoryEstimate:
        """The peak of a prompt that fills a context, by default the arm's, but for one token: the worst case for it."""
        length = self.context if context is None else context
        return peak_bytes(Shape(self.facts, setup, max(1, length - 1), 1, self.batch))

    def longest(self, setup: Setup, room_bytes: int) -> int:
        """The longest context that fits, by bisection: memory never falls as the context grows."""

        def needed(context: int) -> int:
            memory = self.memory(setup, context)
            return max(memory.total, memory.fullest)

        return bisect.bisect_right(range(1, self.facts.max_positions + 1), room_bytes, key=needed)


def why_refused(checked: Checked) -> str:
    """Why a choice of the arm cannot run there, or would become another one; "" if none does."""
    verdicts = (v for v in checked.verdicts if v.level in ("blocked", "fallback") and v.axis != "model")
    return next((v.reason for v in verdicts), "")


# --- the GPUs on which it would fit -----------------------------------------------------------------

Card = tuple[GpuSpec, Machine]


def cards(machine: Machine, count: int) -> list[Card]:
    """The GPUs of the catalogue, the smallest first, so many of each in a machine like this one with every package."""
    return [(spec, card_machine(machine, spec, count)) for spec in sorted(gpus(), key=lambda spec: spec.memory_bytes)]


def smallest_card(arm: FitArm, offered: Sequence[Card]) -> str:
    """Name of the first GPU on which the arm runs and fits, as many as are offered; "" if there is none."""
    peaks: dict[tuple[int, int], int | None] = {}
    for spec, machine in offered:
        if spec.capability not in peaks:  # what runs, and what it needs, is the same on all GPUs of a capability
            checked = arm.on(machine)
            peaks[spec.capability] = None if why_refused(checked) else arm.memory(arm.setup(checked, machine)).total
        peak = peaks[spec.capability]
        if peak is not None and peak <= spec.memory_bytes:
            return spec.name
    return ""


def gpus_that_fit(arm: FitArm, machine: Machine, memory_bytes: int, most: int) -> int:
    """The smallest number of the machine's GPUs, at most `most`, on which the arm runs and fits; 0 if none."""
    for count in parallel.SIZES:
        if arm.shared[0] < count <= most:
            choices, there = {**arm.choices, "parallel": parallel.choice_of(arm.facts, count)}, of_gpus(machine, count)
            wider = replace(arm, choices=choices, shared=(1, 1))
            checked = wider.on(stocked(there))
            if not why_refused(checked) and wider.memory(wider.setup(checked, there)).total <= memory_bytes:
                return count
    return 0


# --- the row ----------------------------------------------------------------------------------------

SHORT_CONTEXT = 256
"""A row is offered to Compare, which keeps its own prompt, if a context of this many tokens fits on this machine."""

TIGHT = 0.10
"""A margin below this share of a GPU's memory is tight: about what the predictions may be off by (lab/measurements). On
a CPU the predictions state their own."""

Margin = Literal["comfortable", "tight", "does not fit"]


@dataclass(frozen=True, slots=True)
class FitRow:
    """One combination at the requested context and batch; bytes are per GPU.

    dtype           number format of the activations, of the KV cache and of weights that are not quantized
    margin_bytes    memory of the device beyond the peak; negative if it does not fit
    max_context     longest context that fits, up to the model's positions; 0 if not even one token does
    floor_s         roofline bound per token at the requested context; None if the bandwidth is unknown
    smallest_gpu    the smallest GPU of the catalogue on which it fits (as many of them as the table is for), or ""
    enough_gpus     number of GPUs of this kind on which it would fit, or the answer fits; 0 where it fits on those that
                    were asked for, or none is known
    not_here        why it cannot be run on this machine, or ""
    beside          of the answer, choices of other axes than those of the table, by which it is a row of its own
    main            whether it is shown at first: the least lossy cache of each quantization, and of the best
                    quantization the caches that save memory
    """

    choices: Mapping[str, str]
    dtype: str
    weights_bytes: int
    kv_bytes: int
    kv_host_bytes: int
    workspace_bytes: int
    runtime_bytes: int
    peak_bytes: int
    margin_bytes: int
    margin: Margin
    max_context: int
    floor_s: float | None
    fits: bool
    smallest_gpu: str = ""
    enough_gpus: int = 0
    not_here: str = ""
    beside: Mapping[str, str] = field(default_factory=dict)
    main: bool = False


def fit_row(arm: FitArm, device: Device, offered: Sequence[Card], missing: str = "") -> FitRow:
    """The row of an arm that the device supports. `missing`: why none can be run on this machine, or ""."""
    setup = arm.setup(arm.on(device.machine), device.machine)
    estimate, room = arm.memory(setup), device.memory_bytes
    margin_bytes = room - estimate.total
    dtype = resolved_dtype(arm.facts, setup.dtype)
    rates = device.limits(dtype)
    most = max(1, len(device.machine.gpus)) if device.here else parallel.MAX_GPUS
    return FitRow(
        choices=arm.choices,
        dtype=dtype,
        weights_bytes=estimate.weights,
        kv_bytes=estimate.kv,
        kv_host_bytes=estimate.kv_elsewhere,
        workspace_bytes=estimate.workspace,
        runtime_bytes=estimate.runtime_bytes + estimate.heap,
        peak_bytes=estimate.total,
        margin_bytes=margin_bytes,
        margin=margin_of(margin_bytes, room, estimate.margin),
        max_context=arm.longest(setup, room),
        floor_s=None if rates is None else bound(arm.facts, setup, arm.context, arm.batch, rates).seconds,
        fits=margin_bytes >= 0,
        smallest_gpu=smallest_card(arm, offered),
        enough_gpus=0 if margin_bytes >= 0 else gpus_that_fit(arm, device.machine, room, most),
        not_here=missing or _not_here(arm, device),
    )


def margin_of(margin_bytes: int, room_bytes: int, stated: float = 0.0) -> Margin:
    """The word for a margin. `stated`: by what share the prediction may be off, 0 where it does not say."""
    if margin_bytes < 0:
        return "does not fit"
    return "tight" if margin_bytes < (stated or TIGHT) * room_bytes else "comfortable"


def _not_here(arm: FitArm, device: Device) -> str:
    """Why Compare could not run an arm on this machine with a short prompt; "" if it could."""
    short = replace(arm, context=min(arm.context, SHORT_CONTEXT))
    checked = short.on(device.home)
    if reason := next((verdict.reason for verdict in checked.blocked), ""):
        return reason
    needed = needed_bytes(short.memory(short.setup(checked, device.home)), checked.plan)
    if needed <= device.home_bytes:
        return ""
    size, free = (" ".join(bytes_text(amount)) for amount in (needed, device.home_bytes))
    return f"It needs {size} here even for a short prompt, and {free} are free."


def unloadable(facts: ModelFacts) -> str:
    """Why this model can be loaded on no machine, or ""."""
    try:
        check_loadable(facts)
    except InputError as error:
        return str(error)
    return ""
