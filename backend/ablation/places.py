"""Where trials run beside each other: on GPUs of this machine, each in a process of its own."""

import os
from collections.abc import Iterator, Sequence
from typing import Protocol

from tokendyno.backend.errors import InputError
from tokendyno.backend.executors.trial_process import Answer, Broken, TrialProcess, TrialTask, decode_answer, encode
from tokendyno.backend.hardware import Gpu, Machine


class PlaceLost(Exception):
    """What a place was doing is lost, and its unfinished trials are given back; the message says why.

    gone   the place can take no other
    """

    def __init__(self, why: str, gone: bool = False) -> None:
        super().__init__(why)
        self.gone = gone


class Place(Protocol):
    """Carries one errand out at a time. `name`: for the user."""

    name: str

    def carry_out(self, errand: TrialTask) -> Iterator[Answer]:
        """Each answer as it comes. Raises PlaceLost."""

    def stop(self) -> None:
        """End the errand, from another thread."""


class GpuPlace:
    """One GPU of this machine, which its process alone sees."""

    def __init__(self, gpu: Gpu) -> None:
        self.name, self._seen_as = f"GPU {gpu.index}", _seen_as(gpu)
        self._process: TrialProcess | None = None
        self._stopped = False

    def carry_out(self, errand: TrialTask) -> Iterator[Answer]:
        self._process = TrialProcess(encode(errand), {"CUDA_VISIBLE_DEVICES": self._seen_as})
        if self._stopped:  # while it was being started
            self._process.end()
        try:
            yield from map(decode_answer, self._process.answers())
        except Broken as error:
            raise PlaceLost(str(error)) from error

    def stop(self) -> None:
        self._stopped = True
        if self._process is not None:
            self._process.end()


def _seen_as(gpu: Gpu) -> str:
    """What CUDA_VISIBLE_DEVICES calls it: its UUID, or without NVML, which counts all GPUs, its place among those that
    this process sees."""
    listed = [part.strip() for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part.strip()]
    return gpu.uuid or (listed[gpu.index] if gpu.index < len(listed) else str(gpu.index))


def gpu_places(wanted: int, machine: Machine) -> Sequence[Place]:
    """That many GPUs. InputError if there are fewer."""
    if wanted < 1 or wanted > len(machine.gpus):
        have = f"{len(machine.gpus)} GPU{'s' * (len(machine.gpus) != 1)}"
        raise InputError(f"--side-by-side is {wanted}, and this machine has {have}: each trial needs one of its own.")
    return [GpuPlace(gpu) for gpu in machine.gpus[:wanted]]
