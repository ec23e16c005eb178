"""What the hardware can do at most: of this machine, measured or by the catalogue, or of a card of the catalogue."""

from collections.abc import Callable

from backend import bandwidth
from backend.gpus import GpuSpec, recognise
from backend.hardware import Machine
from backend.predict.roofline import Floor, Limits


def of_machine(machine: Machine, dtype: str) -> Limits | None:
    """The device in use: the bandwidth that was measured here before the data sheet's; None where neither is known."""
    spec = recognise(machine.gpus[0].name) if machine.gpus else None
    flops = spec.flops_per_s.get(dtype) if spec else None
    found = bandwidth.recall(machine)
    if found is not None:
        strange = ", not in the catalogue" if machine.gpus and spec is None else ""
        return Limits(found.read_bytes_per_s, flops, f"measured on this machine{strange}")
    return of_gpu(spec, dtype) if spec else None


def of_gpu(spec: GpuSpec, dtype: str) -> Limits:
    """A card of the catalogue."""
    return Limits(spec.bandwidth_bytes_per_s, spec.flops_per_s.get(dtype), f"data sheet of {spec.name}")


def learn(machine: Machine, say: Callable[[str], None], stopped: Callable[[], bool]) -> None:
    """Before a run: a GPU that is not in the catalogue is measured and that is kept, once. `say` is told while it is
    done, and why it failed, if so; then there is no floor, and nothing is tried again by this process."""
    name = machine.gpus[0].name if machine.gpus else ""
    if not name or name in _TRIED or of_machine(machine, "float32") is not None:
        return
    say(f"measuring the memory bandwidth: {name} is not in the catalogue")
    try:
        failed = bandwidth.remember(bandwidth.measure(machine, stopped=stopped))
    except bandwidth.MeasureFailed as error:
        failed = f"the memory bandwidth of {name} could not be measured: {error}"
    if failed and not stopped():
        _TRIED.add(name)
        say(failed)


_TRIED: set[str] = set()

UNKNOWN = "bandwidth unknown: run doctor --bandwidth"
"""Why there is no floor, where there is little room to say it."""


def basis(least: Floor, found: Limits) -> str:
    """The rate that bounds a step, and whence it is known."""
    if least.bound == "compute" and found.flops_per_s:
        return f"{found.flops_per_s / 1e12:,.4g} Tflop/s, {found.source}"
    return f"{found.bandwidth_bytes_per_s / 1e9:,.4g} GB/s, {found.source}"


def work(least: Floor) -> str:
    """What a step must do at that rate."""
    return f"{least.flops / 1e12:,.3g} Tflop" if least.bound == "compute" else f"{least.bytes / 1e9:,.3g} GB to read"


def remark(machine: Machine) -> str:
    """What should be known of this machine's limits, in a sentence; "" where nothing is."""
    name = machine.gpus[0].name if machine.gpus else "the CPU"
    if of_machine(machine, "float32") is None:
        return f"The memory bandwidth of {name} is not known: measure it with tokendyno doctor --bandwidth."
    if machine.gpus and recognise(name) is None:
        return f"{name} is not in the catalogue: its bandwidth was measured here, its rates are not known."
    return ""
