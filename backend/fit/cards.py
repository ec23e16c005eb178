"""On what a combination would fit: the smallest GPU of the catalogue, or several of the GPU that was asked for."""

from collections.abc import Sequence
from dataclasses import replace

from tokendyno.backend.errors import InputError
from tokendyno.backend.fit.arm import FitArm, refused
from tokendyno.backend.hardware import Machine
from tokendyno.backend.hardware.elsewhere import card_machine
from tokendyno.backend.hardware.gpu_specs import GpuSpec, gpus
from tokendyno.backend.predict import parallel
from tokendyno.backend.predict.setup import Setup

Card = tuple[GpuSpec, Machine]


def cards(machine: Machine) -> list[Card]:
    """The GPUs of the catalogue, the smallest first, each in a machine like this one with every package."""
    return [(spec, card_machine(machine, spec)) for spec in sorted(gpus(), key=lambda spec: spec.memory_bytes)]


def smallest_card(arm: FitArm, offered: Sequence[Card]) -> str:
    """Name of the first GPU on which the arm runs and fits, as many as `arm` says; "" if there is none."""
    needed: dict[tuple[int, int], int | None] = {}
    for spec, machine in offered:
        if spec.capability not in needed:  # what runs, and what it needs, is the same on all GPUs of a capability
            checked = arm.on(machine)
            needed[spec.capability] = None if refused(checked) else arm.memory(arm.setup(checked, machine)).total
        peak_bytes = needed[spec.capability]
        if peak_bytes is not None and peak_bytes <= spec.memory_bytes:
            return spec.name
    return ""


def gpus_that_fit(arm: FitArm, setup: Setup, memory_bytes: int, most: int) -> int:
    """The smallest number of GPUs of that memory, at most `most`, on which the model fits; 0 if none."""
    for count in parallel.SIZES:
        tensor, expert = parallel.group_sizes(arm.facts, count)
        if not arm.shared[0] < count <= most or parallel.unrunnable(arm.facts, setup.quantization, tensor, expert):
            continue
        try:
            parallel.check_sizes(arm.facts, tensor, expert)
        except InputError:
            continue
        wider = replace(arm, shared=(tensor, expert))
        if wider.memory(replace(setup, tensor_parallel=tensor, expert_parallel=expert)).total <= memory_bytes:
            return count
    return 0
