"""Where trials run beside each other, and how they are shared out.

A place is a GPU of this machine, with a process of its own, or a task of a Ray cluster, which has a GPU or, on CPUs, a
node. Ray is an optional extra. What a place had not finished when it was lost is given back and runs elsewhere.
"""

import os
import queue
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from tokendyno.backend.config import Request
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors.several_machines import parse_endpoint
from tokendyno.backend.executors.trial_process import (
    Answer,
    Broken,
    Done,
    Impossible,
    TrialProcess,
    TrialTask,
    decode_answer,
    encode,
)
from tokendyno.backend.hardware import Gpu, Machine
from tokendyno.backend.units import plural


class PlaceLost(Exception):
    """What a place was doing is lost, and its unfinished trials are given back; the message says why. `gone`: the place
    can take no other."""

    def __init__(self, why: str, gone: bool = False) -> None:
        super().__init__(why)
        self.gone = gone


class Place(Protocol):
    """Carries one task out at a time. `name`: for the user."""

    name: str

    def carry_out(self, job: TrialTask) -> Iterator[Answer]:
        """Each answer as it comes. Raises PlaceLost."""

    def stop(self) -> None:
        """End the task, from another thread."""


class GpuPlace:
    """One GPU of this machine, which its process alone sees."""

    def __init__(self, gpu: Gpu) -> None:
        self.name, self._seen_as = f"GPU {gpu.index}", _seen_as(gpu)
        self._process: TrialProcess | None = None
        self._stopped = False

    def carry_out(self, job: TrialTask) -> Iterator[Answer]:
        self._process = TrialProcess(encode(job), {"CUDA_VISIBLE_DEVICES": self._seen_as})
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
    """What CUDA_VISIBLE_DEVICES calls a GPU: its UUID; without NVML, which alone knows it, its entry in what this
    process sees."""
    visible = [part.strip() for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part.strip()]
    return gpu.uuid or (visible[gpu.index] if gpu.index < len(visible) else str(gpu.index))


def gpu_places(wanted: int, machine: Machine) -> Sequence[Place]:
    """That many GPUs. InputError if there are fewer."""
    if wanted < 1 or wanted > len(machine.gpus):
        have = plural(len(machine.gpus), "GPU")
        raise InputError(f"--side-by-side is {wanted}, and this machine has {have}: each trial needs one of its own.")
    return [GpuPlace(gpu) for gpu in machine.gpus[:wanted]]


# --- Ray ------------------------------------------------------------------------------------------


def task(job: bytes) -> Iterator[bytes]:
    """What runs on a node: a process of its own, as for a GPU here. Ray names the GPU in CUDA_VISIBLE_DEVICES, and sets
    OMP_NUM_THREADS, which would change what is measured."""
    yield from TrialProcess(job, {}, ("OMP_NUM_THREADS",)).answers()


class RayPlace:
    """One of the tasks that run at a time; Ray chooses where. `resource`: "GPU" or "CPU"; `amount`: CPUs of a task."""

    def __init__(self, ray: Any, name: str, resource: str, amount: float) -> None:
        self.name, self._ray, self._resource = name, ray, resource
        options = {"num_gpus": 1, "num_cpus": 0} if resource == "GPU" else {"num_cpus": amount}
        self._running: Any = None
        self._stopped = False
        self._task = ray.remote(num_returns="streaming", max_retries=0, **options)(task)

    def carry_out(self, job: TrialTask) -> Iterator[Answer]:
        self._running = self._task.remote(encode(job))
        if self._stopped:  # while it was being submitted
            self.stop()
        try:
            for answer in self._running:
                yield decode_answer(self._ray.get(answer))
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, Broken):
                raise PlaceLost(str(error.cause)) from error
            raise
        except self._ray.exceptions.RayError as error:
            reason = str(error).strip().partition("\n")[0].partition(". ")[0]
            alive = self._ray.cluster_resources().get(self._resource, 0)
            raise PlaceLost(f"{type(error).__name__}: {reason[:160].rstrip('.')}", gone=not alive) from error

    def stop(self) -> None:
        self._stopped = True
        if self._running is not None:
            self._ray.cancel(self._running, force=True)


def ray_places(address: str, device: str) -> Sequence[Place]:
    """Connect, and as many places as there are GPUs, or nodes with CPUs. InputError where that cannot be."""
    try:
        import ray
    except ImportError as error:
        raise InputError("--ray needs Ray: pip install 'tokendyno[ray]'.") from error
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        if "://" not in address and ":" in address:  # Ray itself would try for minutes
            endpoint = parse_endpoint(address)
            socket.create_connection((endpoint.host, endpoint.port), timeout=5.0).close()
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", configure_logging=False)
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError(
            f"No Ray cluster answers at {address} ({reason[:200]}). Give the address that `ray start --head` printed."
        ) from error
    resource = "GPU" if device == "cuda" else "CPU"
    amounts = [node["Resources"].get(resource, 0.0) for node in ray.nodes() if node["Alive"]]
    amounts = [amount for amount in amounts if amount >= 1]
    if not amounts:
        ray.shutdown()
        raise InputError(f"The Ray cluster at {address} has no {resource}. Trials are compared on {device}.")
    count = int(sum(amounts)) if resource == "GPU" else len(amounts)
    return [RayPlace(ray, f"Ray task {n + 1}", resource, min(amounts)) for n in range(count)]


# --- sharing out ----------------------------------------------------------------------------------

Key = TypeVar("Key")
MAX_LOSSES = 3
"""How often trials are given back before they are taken for the cause."""


@dataclass(slots=True)
class Unit(Generic[Key]):
    """Trials that run one after the other in one place, since they are compared with each other. `losses`: how often
    they were given back."""

    trials: list[tuple[Key, Request]]
    losses: int = 0


@dataclass(frozen=True, slots=True)
class _Lost(Generic[Key]):
    unit: Unit[Key]
    place: Place
    error: PlaceLost


class SideBySide(Generic[Key]):
    """One course of trials. Used by one thread, which keeps what comes; each place has a thread of its own."""

    def __init__(
        self,
        places: Sequence[Place],
        job: TrialTask,
        keep: Callable[[Key, Done, Place], None],
        say: Callable[[str], None],
    ) -> None:
        self._places, self._job, self._keep, self._say = places, job, keep, say
        self._free: deque[Place] = deque(places)
        self._waiting: deque[Unit[Key]] = deque()
        self._news: queue.SimpleQueue[tuple[Key, Done, Place] | _Lost[Key] | Place | Exception] = queue.SimpleQueue()

    def perform(self, units: Sequence[Unit[Key]]) -> None:
        """Return when all are done. InputError where a trial cannot be run anywhere; whatever `keep` raises."""
        self._waiting.extend(units)
        busy = 0
        try:
            while self._waiting or busy:
                while self._waiting and self._free:
                    place, unit = self._free.popleft(), self._waiting.popleft()
                    name = f"place-{place.name}"
                    threading.Thread(target=self._run, args=(place, unit), name=name, daemon=True).start()
                    busy += 1
                if not busy:
                    raise InputError("No place is left in which trials can run. Finished ones are kept.")
                match self._news.get():
                    case _Lost() as lost:
                        busy -= 1
                        self._give_back(lost)
                    case Exception() as error:
                        raise error
                    case (key, done, place):
                        self._keep(key, done, place)
                    case place:
                        busy -= 1
                        self._free.append(place)
        finally:
            for place in self._places if busy else ():
                place.stop()

    def _give_back(self, lost: _Lost[Key]) -> None:
        unit = lost.unit
        unit.losses += 1
        if unit.losses > MAX_LOSSES:
            raise InputError(f"The same trial was lost {unit.losses} times: {lost.error}")
        left = "1 trial runs" if len(unit.trials) == 1 else f"{len(unit.trials)} trials run"
        self._say(f"note: {lost.place.name} was lost ({lost.error}); {left} again elsewhere.")
        self._waiting.append(unit)
        if not lost.error.gone:
            self._free.append(lost.place)

    def _run(self, place: Place, unit: Unit[Key]) -> None:
        """Body of a place's thread: one unit."""
        job = msgspec.structs.replace(self._job, requests=[request for _, request in unit.trials])
        try:
            for answer in place.carry_out(job):
                if isinstance(answer, Impossible):
                    raise InputError(answer.reason)
                self._news.put((unit.trials.pop(0)[0], answer, place))
            if unit.trials:
                raise PlaceLost("it ended early")
            self._news.put(place)
        except PlaceLost as error:
            self._news.put(_Lost(unit, place, error))
        except Exception as error:
            self._news.put(error)
