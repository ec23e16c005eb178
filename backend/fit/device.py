"""The target device: a catalogue GPU, any GPU of a given size, or this machine; one GPU or several."""

import dataclasses
import re
from dataclasses import dataclass

from tokendyno.backend.errors import InputError
from tokendyno.backend.hardware import Machine, peak_rates
from tokendyno.backend.hardware.elsewhere import card_machine, machine_like
from tokendyno.backend.hardware.gpu_specs import find_gpu
from tokendyno.backend.hardware.peak_rates import PeakRates
from tokendyno.backend.predict.parallel import check_number

THIS = "this machine"
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "MB": 10**6, "GB": 10**9, "TB": 10**12}


@dataclass(frozen=True, slots=True)
class Device:
    """The device a model should fit on.

    memory_bytes      all memory of a named GPU; free memory of this machine
    machine           what rules look at
    here              whether it is a device of this machine
    home, home_bytes  this machine, on which a row can be run, and its free memory
    note              what is missing to know its bandwidth, or ""
    """

    name: str
    memory_bytes: int
    machine: Machine
    here: bool
    home: Machine
    home_bytes: int
    note: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """What a machine that has it calls it: the names that NVML gives a GPU of the catalogue."""
        return (self.name,) if self.here or self.note else find_gpu(self.name).nvml

    def limits(self, dtype: str) -> PeakRates | None:
        """Its peak rates; None if its bandwidth is unknown."""
        if self.here:
            return peak_rates.of_machine(self.machine, dtype)
        return None if self.note else peak_rates.of_gpu(find_gpu(self.name), dtype)


def parse_size(text: str) -> int:
    """Bytes of a size such as 24GiB or 24GB. The unit is required: the two differ by 7%."""
    match = re.fullmatch(r"\s*([0-9]{1,7}(?:\.[0-9]{1,6})?)\s*([A-Za-z]+)\s*", text)
    units = {unit.casefold(): size for unit, size in UNITS.items()}
    size = round(float(match[1]) * units[match[2].casefold()]) if match and match[2].casefold() in units else 0
    if not 1 << 20 <= size <= 1 << 50:
        raise InputError(
            f"Cannot read the size {text!r}. Write a number with a unit, such as 24GiB (2^30) or 24GB (10^9), and at "
            "least 1MiB."
        )
    return size


def size_typed(size: int) -> str:
    """The size as `parse_size` takes it, in the unit that needs the fewest digits: 24GiB, 24GB."""
    numbers = {unit: f"{size / scale:g}" for unit, scale in UNITS.items()}
    exact = [n + unit for unit, n in numbers.items() if "e" not in n and round(float(n) * UNITS[unit]) == size]
    return min(exact, key=len, default=f"{size / (1 << 30):.6f}GiB")


def is_size(text: str) -> bool:
    """Whether a text is a size and not the name of a GPU: it starts with a digit."""
    return text.strip()[:1].isdigit()


def device_of(machine: Machine, gpu: str | None = None, vram: str | None = None, *, freeable_bytes: int = 0) -> Device:
    """The GPU of that name, an unknown GPU of that size, or this machine, where workers would free `freeable_bytes`."""
    if gpu is not None and vram is not None:
        raise InputError("Use either --gpu or --vram, not both.")
    free = machine.free_device_bytes + freeable_bytes
    if gpu is not None and gpu.strip().casefold() != THIS:
        spec = find_gpu(gpu)
        return Device(spec.name, spec.memory_bytes, card_machine(machine, spec), False, machine, free)
    if vram is not None:
        size = parse_size(vram)
        note = "Only its size is known, so there are no roofline bounds. Name a GPU of the catalogue with --gpu."
        like = machine_like(machine, "a GPU", size, (9, 0))
        return Device(f"a GPU of {vram.strip()}", size, like, False, machine, free, note)
    name = machine.gpus[0].name if machine.gpus else machine.cpu
    return Device(name, free, machine, True, machine, free, peak_rates.remark(machine))


def elsewhere(machine: Machine, gpu: str | None, gpus: int = 1) -> Machine | None:
    """A machine with so many GPUs of the catalogue; None where no GPU, or this machine, is named."""
    if gpu is None or gpu.strip().casefold() == THIS:
        if gpus != 1:
            raise InputError(f"{gpus:,} GPUs of which kind? Name one of the catalogue with --gpu, such as H100-SXM.")
        return None
    check_number(gpus)
    return card_machine(machine, find_gpu(gpu), gpus)


def several(device: Device, gpus: int) -> Device:
    """The memory of each of several GPUs; on this machine, of the one with the least free memory."""
    if gpus == 1 or not device.here:
        return device
    installed = device.machine.gpus
    if gpus > len(installed):
        count = "1 GPU" if len(installed) == 1 else f"{len(installed) or 'no'} GPUs"
        raise InputError(f"This machine has {count}, not {gpus}. Name a GPU of the catalogue, or give a memory size.")
    least = min(device.memory_bytes, *(gpu.free_bytes for gpu in installed[1:gpus]))
    return dataclasses.replace(device, memory_bytes=least)


def of_gpus(machine: Machine, count: int) -> Machine:
    """The machine with so many of its first GPU."""
    gpus = tuple(dataclasses.replace(gpu, index=at) for gpu in machine.gpus[:1] for at in range(count))
    return dataclasses.replace(machine, gpus=gpus)


def roomy(machine: Machine) -> Machine:
    """That machine with unlimited free memory."""
    free = tuple(dataclasses.replace(gpu, free_bytes=1 << 60) for gpu in machine.gpus)
    return dataclasses.replace(machine, gpus=free, free_bytes=1 << 60)
