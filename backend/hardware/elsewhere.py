"""A machine with other GPUs than this one, and what is taken for granted of it."""

import functools
from dataclasses import replace

from tokendyno.backend.hardware import kernel_packages
from tokendyno.backend.hardware.gpu_specs import GpuSpec
from tokendyno.backend.hardware.machine import PACKAGES, Machine
from tokendyno.backend.hardware.nvidia import Gpu

ASSUMED = (
    "As it would be on {} of the catalogue, where nothing was measured: its memory is taken to be free, and torch for "
    "CUDA, a C compiler and every package that the arm needs to be installed, in the versions of this machine."
)


def card_machine(machine: Machine, spec: GpuSpec, gpus: int = 1) -> Machine:
    """A machine with so many GPUs of the catalogue, and the packages of `machine`."""
    return machine_like(machine, spec.name, spec.memory_bytes, spec.capability, gpus)


def machine_like(machine: Machine, name: str, memory: int, capability: tuple[int, int], gpus: int = 1) -> Machine:
    """The same for GPUs of any name, memory in bytes and compute capability."""
    packages = dict(machine.packages)
    if "torch" in packages:  # the CUDA build of that version
        packages["torch"] = packages["torch"].partition("+")[0]
    folder, layers = _bundled_kernels()
    other = replace(
        machine,
        cpu="",
        gpus=tuple(Gpu(index, name, memory, memory, capability) for index in range(gpus)),
        driver="",
        gpu_problem="",
        system="Linux x86_64",
        packages=tuple(packages.items()),
        avx512_bf16=False,
        bfloat16=(),
        hub_kernels=(),
        kernels=folder,
        kernel_layers=layers,
        nvml_problem="",
        no_compiler="",
        zero_gpu=False,
        hosts=1,
        assumed=ASSUMED.format(name if gpus == 1 else f"{gpus} x {name}"),
    )
    return stocked(other)


def stocked(machine: Machine) -> Machine:
    """The machine with every package installed."""
    packages = dict.fromkeys(PACKAGES, "999") | dict(machine.packages)
    return replace(machine, packages=tuple(sorted(packages.items())), hub_offline=False)


@functools.cache
def _bundled_kernels() -> tuple[str, tuple[str, ...]]:
    """The folder of `kernels=local` on a GPU, and the layers that it replaces."""
    return str(kernel_packages.BUNDLED), tuple(sorted(kernel_packages.layers(kernel_packages.BUNDLED, "cuda")))
