"""What a model shall fit on: a card of the catalogue, one of some size, or this machine; one or several."""

import dataclasses
import re
from dataclasses import dataclass

from backend import limits
from backend.errors import InputError
from backend.gpus import find_gpu
from backend.gpus_found import Gpu
from backend.hardware import PACKAGES, Machine
from backend.predict.roofline import Limits

THIS = "this machine"
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "MB": 10**6, "GB": 10**9, "TB": 10**12}


@dataclass(frozen=True, slots=True)
class Device:
    """What a model shall fit on.

    memory_bytes  all of a card that is named; what is free now on this machine
    machine       the machine that rules look at; `here` says that it is this one
    note          a remark on its bandwidth, "" where it is known
    """

    name: str
    memory_bytes: int
    machine: Machine
    here: bool
    note: str = ""

    def limits(self, dtype: str) -> Limits | None:
        """What it can do at most, None where its bandwidth is not known."""
        if self.here:
            return limits.of_machine(self.machine, dtype)
        return None if self.note else limits.of_gpu(find_gpu(self.name), dtype)


def parse_size(text: str) -> int:
    """Bytes of a size such as 24GiB or 24GB; the unit must be written, since the two differ by 7%."""
    match = re.fullmatch(r"\s*([0-9]{1,7}(?:\.[0-9]{1,6})?)\s*([A-Za-z]+)\s*", text)
    units = {unit.casefold(): size for unit, size in UNITS.items()}
    size = round(float(match[1]) * units[match[2].casefold()]) if match and match[2].casefold() in units else 0
    if not 1 << 20 <= size <= 1 << 50:
        raise InputError(
            f"The size {text!r} cannot be read. Write a number with its unit: 24GiB (2^30) or 24GB (10^9)."
        )
    return size


def is_size(text: str) -> bool:
    """Whether a text begins like a size: a number first, where names of cards have letters."""
    return text.strip()[:1].isdigit()


def device_of(machine: Machine, gpu: str | None = None, vram: str | None = None, *, held_bytes: int = 0) -> Device:
    """The card of that name, an unknown card of that size, or this machine; there `held_bytes` would be given back."""
    if gpu is not None and vram is not None:
        raise InputError("Give --gpu or --vram, not both.")
    if gpu is not None and gpu.strip().casefold() != THIS:
        spec = find_gpu(gpu)
        return Device(
            spec.name, spec.memory_bytes, _like(machine, spec.name, spec.memory_bytes, spec.capability), False
        )
    if vram is not None:
        size = parse_size(vram)
        note = (
            "Nothing but the size of this GPU is known, so there are no floors. Name one of the catalogue with --gpu."
        )
        return Device(f"a GPU of {vram.strip()}", size, _like(machine, "a GPU", size, (9, 0)), False, note)
    name = machine.gpus[0].name if machine.gpus else machine.cpu
    return Device(name, machine.room_bytes + held_bytes, machine, True, limits.remark(machine))


def several(device: Device, gpus: int) -> Device:
    """What each of so many GPUs has; on this machine, what the fullest of them has left."""
    if gpus == 1 or not device.here:
        return device
    there = device.machine.gpus
    if gpus > len(there):
        count = "1 GPU" if len(there) == 1 else f"{len(there) or 'no'} GPUs"
        raise InputError(
            f"This machine has {count}, not {gpus}. Name a card of the catalogue, or give a size of memory."
        )
    return dataclasses.replace(device, memory_bytes=min(device.memory_bytes, *(g.free_bytes for g in there[1:gpus])))


def _like(machine: Machine, name: str, memory: int, capability: tuple[int, int]) -> Machine:
    """This machine with another GPU, and with every package: what is missing here says nothing of it."""
    gpu = Gpu(0, name, memory, memory, capability)
    return stocked(dataclasses.replace(machine, gpus=(gpu,), gpu_problem=""))


def roomy(machine: Machine) -> Machine:
    """That machine with memory for anything."""
    free = tuple(dataclasses.replace(gpu, free_bytes=1 << 60) for gpu in machine.gpus)
    return dataclasses.replace(machine, gpus=free, free_bytes=1 << 60)


def stocked(machine: Machine) -> Machine:
    """That machine with every package."""
    packages = dict.fromkeys(PACKAGES, "999") | dict(machine.packages)
    return dataclasses.replace(machine, packages=tuple(sorted(packages.items())), hub_offline=False)
