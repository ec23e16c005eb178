"""Peak rates for the roofline: memory bandwidth and FLOP/s, measured on this machine or from a data sheet."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from tokendyno.backend.hardware import Machine, bandwidth
from tokendyno.backend.hardware.gpu_specs import GpuSpec, find_by_nvml_name, find_gpu

log = logging.getLogger("tokendyno")


@dataclass(frozen=True, slots=True)
class PeakRates:
    """Peak rates of one device.

    flops_per_s       dense operations in the compute dtype; None if unknown
    link_bytes_per_s  between two devices, each way; None if unknown
    """

    bandwidth_bytes_per_s: float
    flops_per_s: float | None
    source: str
    link_bytes_per_s: float | None = None
    link: str = ""


THROUGH_MEMORY = "processes on a CPU exchange through its memory"


def of_machine(machine: Machine, dtype: str) -> PeakRates | None:
    """Rates of the device in use: the bandwidth measured here, else the data sheet's; None if neither is known."""
    if machine.assumed:
        return of_gpu(find_gpu(machine.name), dtype)
    spec = find_by_nvml_name(machine.gpus[0].name) if machine.gpus else None
    flops = spec.flops_per_s.get(dtype) if spec else None
    measured = bandwidth.recall(machine.name)
    if measured is not None:
        unlisted = ", not in the catalogue" if machine.gpus and spec is None else ""
        link = (spec.link_bytes_per_s, _link_of(spec)) if spec else (None, "")
        if not machine.gpus:
            link = measured.read_bytes_per_s, THROUGH_MEMORY
        return PeakRates(measured.read_bytes_per_s, flops, f"measured on this machine{unlisted}", *link)
    return of_gpu(spec, dtype) if spec else None


def of_gpu(spec: GpuSpec, dtype: str) -> PeakRates:
    """Rates of a GPU of the catalogue, from its data sheet."""
    flops, source = spec.flops_per_s.get(dtype), f"data sheet of {spec.name}"
    return PeakRates(spec.bandwidth_bytes_per_s, flops, source, spec.link_bytes_per_s, _link_of(spec))


def _link_of(spec: GpuSpec) -> str:
    return f"NVLink, data sheet of {spec.name}" if spec.link_bytes_per_s else ""


_TRIED: set[str] = set()
"""Devices whose bandwidth this process has tried to measure."""


def measure_unknown_gpu(machine: Machine, say: Callable[[str], None], stopped: Callable[[], bool]) -> None:
    """Before a run: measure and store the bandwidth of a GPU outside the catalogue, once. `say` tells the progress."""
    name = machine.name
    if not machine.gpus or machine.zero_gpu or name in _TRIED or of_machine(machine, "float32") is not None:
        return
    say(f"measuring the memory bandwidth: {name} is not in the catalogue")
    if (failed := _measure(machine, stopped)) and not stopped():
        _TRIED.add(name)
        say(failed)


def measure_once(machine: Machine, stopped: Callable[[], bool]) -> bool:
    """While nothing runs: measure and store the bandwidth if that was never done. False where `stopped` ended it."""
    name, measured = machine.name, bandwidth.recall(machine.name)
    if machine.zero_gpu or name in _TRIED or (measured is not None and (machine.gpus or measured.bfloat16)):
        return True
    failed = _measure(machine, stopped)
    if failed and stopped():
        return False
    _TRIED.add(name)
    if failed:
        log.warning(failed)
    return True


def _measure(machine: Machine, stopped: Callable[[], bool]) -> str:
    """Measure and store the bandwidth; returns why that failed, "" if it did not."""
    try:
        return bandwidth.remember(bandwidth.measure(machine, stopped=stopped))
    except bandwidth.MeasureFailed as error:
        return f"the memory bandwidth of {machine.name} could not be measured: {error}"


def remark(machine: Machine) -> str:
    """What is unknown about this machine's peak rates, in a sentence; "" if nothing is."""
    name = machine.name if machine.gpus else "the CPU"
    if of_machine(machine, "float32") is None:
        if machine.zero_gpu:
            return f"The memory bandwidth of {name} is not known, and cannot be measured on ZeroGPU."
        when = "The app measures it while idle, tokendyno doctor --bandwidth at once."
        return f"The memory bandwidth of {name} is not known yet. {when}"
    if machine.gpus and find_by_nvml_name(name) is None:
        return f"{name} is not in the catalogue: bandwidth was measured here, peak FLOP/s is unknown."
    return ""
