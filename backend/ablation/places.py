"""Where trials run beside each other: on GPUs of this machine, each in a process of its own."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from backend.errors import InputError
from backend.executors.errand import Answer, Broken, Errand, ErrandProcess, decode_answer, encode
from backend.hardware import Machine


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

    def carry_out(self, errand: Errand) -> Iterator[Answer]:
        """Each answer as it comes. Raises PlaceLost."""

    def stop(self) -> None:
        """End the errand, from another thread."""


class GpuPlace:
    """One GPU of this machine, which its process alone sees."""

    def __init__(self, index: int) -> None:
        self.name, self._index = f"GPU {index}", index
        self._process: ErrandProcess | None = None

    def carry_out(self, errand: Errand) -> Iterator[Answer]:
        self._process = ErrandProcess(encode(errand), {"CUDA_VISIBLE_DEVICES": str(self._index)})
        try:
            yield from map(decode_answer, self._process.answers())
        except Broken as error:
            raise PlaceLost(str(error)) from error

    def stop(self) -> None:
        if self._process is not None:
            self._process.end()


def gpu_places(wanted: int, machine: Machine) -> Sequence[Place]:
    """That many GPUs. InputError if there are fewer."""
    if wanted < 1 or wanted > len(machine.gpus):
        have = f"{len(machine.gpus)} GPU{'s' * (len(machine.gpus) != 1)}"
        raise InputError(f"--side-by-side is {wanted}, and this machine has {have}: each trial needs one of its own.")
    return [GpuPlace(gpu.index) for gpu in machine.gpus[:wanted]]
