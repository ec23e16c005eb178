"""Trials as tasks of a Ray cluster: one GPU each, or on CPUs a node each. Ray is an optional extra."""

import os
import socket
from collections.abc import Iterator, Sequence
from typing import Any

from tokendyno.backend.ablation.places import Place, PlaceLost
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors.several_machines import parse_endpoint
from tokendyno.backend.executors.trial_process import Answer, Broken, TrialProcess, TrialTask, decode_answer, encode


def task(errand: bytes) -> Iterator[bytes]:
    """What runs on a node: a process of its own, as for a GPU here. Ray names the GPU in CUDA_VISIBLE_DEVICES, and sets
    OMP_NUM_THREADS, which would change what is measured."""
    yield from TrialProcess(errand, {}, ("OMP_NUM_THREADS",)).answers()


class RayPlace:
    """One of the tasks that run at a time; Ray chooses where. `resource`: "GPU" or "CPU"; `amount`: for a task."""

    def __init__(self, ray: Any, name: str, resource: str, amount: float) -> None:
        self.name, self._ray, self._resource = name, ray, resource
        asked = {"num_gpus": 1, "num_cpus": 0} if resource == "GPU" else {"num_cpus": amount}
        self._running: Any = None
        self._stopped = False
        self._task = ray.remote(num_returns="streaming", max_retries=0, **asked)(task)

    def carry_out(self, errand: TrialTask) -> Iterator[Answer]:
        self._running = self._task.remote(encode(errand))
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
            first = str(error).strip().partition("\n")[0].partition(". ")[0]
            left = self._ray.cluster_resources().get(self._resource, 0)
            raise PlaceLost(f"{type(error).__name__}: {first[:160].rstrip('.')}", gone=not left) from error

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
        first = str(error).strip().partition("\n")[0]
        raise InputError(
            f"No Ray cluster answers at {address} ({first[:200]}). Give the address that `ray start --head` printed."
        ) from error
    resource = "GPU" if device == "cuda" else "CPU"
    amounts = [node["Resources"].get(resource, 0.0) for node in ray.nodes() if node["Alive"]]
    amounts = [amount for amount in amounts if amount >= 1]
    if not amounts:
        ray.shutdown()
        raise InputError(f"The Ray cluster at {address} has no {resource}. Trials are compared on {device}.")
    count = int(sum(amounts)) if resource == "GPU" else len(amounts)
    return [RayPlace(ray, f"Ray task {n + 1}", resource, min(amounts)) for n in range(count)]
